/** A vendor's simulator as a kitchen of chaos: it reports the same statuses, in the vendor's own words and repeats. */
import { fillMenu } from '../demo/fill-menu.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { SIMULATORS, type PosName } from '../../world/pos/index.ts';
import type { Ticket as VendorTicket } from '../../world/pos/simulator.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import type { Pos, StatusReport, Ticket } from '../../world/pos/start-pos.ts';

/** POS systems that take a request to cancel, ask a person, and here get no answer from that person. */
const ASKS_A_PERSON = new Set<string>(['deliverect']);
/** A vendor's minute before a repeat takes a second. */
const HURRY = 60;

/** @returns the POS, and the settings of its location */
export async function startVendorPos(
  integration: PosName,
  provider: Provider,
): Promise<{ pos: Pos; settings: Readonly<Record<string, unknown>> }> {
  const simulator = await SIMULATORS[integration]({ hurry: HURRY });
  fillMenu(simulator, sampleOrder());
  const settings = provider.settings.parse(simulator.settings);

  /** The vendor's word for a status, if the POS reports that status. */
  const wordFor = (webhookUrl: string, ticket: VendorTicket, status: string): string | undefined =>
    simulator.lifeOf(ticket.fulfillment).find((native) => {
      const webhook = { ...simulator.sign(webhookUrl, ticket, native), url: webhookUrl, receivedAt: new Date() };
      return provider.translateWebhook({ ...webhook, verified: true }, settings)[0]?.status === status;
    });
  const pos = {
    url: simulator.url,
    get tickets() {
      return simulator.tickets as unknown as readonly Ticket[];
    },
    onTicket: undefined as Pos['onTicket'],
    async sendStatus(webhookUrl: string, { serviceOrderId, providerOrderId, status }: StatusReport) {
      const ticket = simulator.tickets.find(
        (each) => each.providerOrderId === providerOrderId || each.serviceOrderId === serviceOrderId,
      );
      const word = ticket && wordFor(webhookUrl, ticket, status);
      if (ticket === undefined || word === undefined) throw new Error(`${integration} has no word for ${status}`);
      const answer = await simulator.report(webhookUrl, ticket, word);
      if (answer.status === 0) throw new Error('there was no answer');
      return answer;
    },
  };
  simulator.onTicket = (ticket) => {
    const { serviceOrderId, note: notes } = ticket;
    let cancelled: Ticket['cancelled'] | true;
    if (ASKS_A_PERSON.has(integration)) {
      Object.defineProperty(ticket, 'cancelled', {
        get: () => cancelled,
        set(to: typeof cancelled) {
          if (to !== true) cancelled = to;
        },
      });
    }
    void pos.onTicket?.(Object.assign(ticket as unknown as Ticket, { order: { serviceOrderId, notes } }));
  };
  return { pos: pos as unknown as Pos, settings: simulator.settings };
}
