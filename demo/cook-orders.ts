import { setTimeout as sleep } from 'node:timers/promises';
import type { FulfillmentType } from '../src/core/lifecycle.ts';
import type { Pos, Ticket } from '../test/support/start-pos.ts';
import type { Timeline } from './timeline.ts';

const STEPS: Record<FulfillmentType, readonly string[]> = {
  pickup: ['RECEIVED', 'IN_PROGRESS', 'READY', 'COMPLETED'],
  delivery: ['RECEIVED', 'IN_PROGRESS', 'READY', 'EN_ROUTE', 'COMPLETED'],
};
/** Long enough to watch, short enough to wait for. */
const PAUSE_MS = 600;
/** As a POS does with a webhook that was not answered 200. */
const TRY_AGAIN_MS = 1_000;

/** The kitchen: moves every ticket of the POS through its life, and reports each step to the webhook. */
export function cookOrders(about: { pos: Pos; webhookUrl: string; timeline: Timeline; signal: AbortSignal }): void {
  const { pos, webhookUrl, timeline, signal } = about;

  const report = async ({ serviceOrderId, providerOrderId }: Ticket, status: string): Promise<boolean> => {
    const answer = await pos.sendStatus(webhookUrl, { serviceOrderId, providerOrderId, status }).catch(() => undefined);
    if (signal.aborted) return false;
    const said = answer === undefined ? 'no answer' : `${answer.status} ${outcomeIn(answer.body)}`;
    const good = answer?.status === 200;
    timeline.tell(
      serviceOrderId,
      'POS',
      `webhook ${status.padEnd('IN_PROGRESS'.length)}  ${said}`,
      good ? 'good' : 'bad',
    );
    return good;
  };

  const cook = async (ticket: Ticket): Promise<void> => {
    const fulfillment = ticket.order.fulfillment?.type === 'delivery' ? 'delivery' : 'pickup';
    // One of an earlier run, which the service did not give up, comes without a beginning.
    timeline.begin({ serviceOrderId: ticket.serviceOrderId, fulfillment });
    timeline.tell(ticket.serviceOrderId, 'POS', `takes it as ${ticket.providerOrderId}`);
    for (const status of STEPS[fulfillment]) {
      await sleep(PAUSE_MS, undefined, { signal });
      while (!(await report(ticket, status))) await sleep(TRY_AGAIN_MS, undefined, { signal });
    }
  };

  pos.onTicket = (ticket) => {
    cook(ticket).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  };
}

function outcomeIn(body: unknown): string {
  const outcome = (body as { outcome?: unknown } | null)?.outcome;
  return typeof outcome === 'string' ? outcome : '';
}
