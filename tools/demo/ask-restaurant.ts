import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { startStandard } from '../../world/pos/standard/start-standard.ts';
import { readBody, serveHttp } from '../../world/network/serve-http.ts';
import { cookOrders } from './cook-orders.ts';
import type { Live } from './follow-live.ts';
import type { Timeline } from './journey-lines.ts';
import { unless } from './keep-busy.ts';
import type { PlaceOrder } from './place-orders.ts';
import { setUpLocation } from './set-up-location.ts';

/** A location whose POS cannot be asked. The answers of this POS are lost. */
export const IN_DOUBT = 'demo-garden';
/** The provider of IN_DOUBT, for PROVIDER_MODULES. */
export const TILL = fileURLToPath(new URL('demo-till.ts', import.meta.url));

/** The time until somebody has read the SMS and looked at the till. */
const LOOK_MS = 5_000;

/** What the gateway reads of a message: docs/notify-restaurants.md. */
type Message = { locationId: string; text: string; orders: { noticeId: string }[]; answerUrl: string };
type About = Omit<Parameters<typeof setUpLocation>[0], 'locationId' | 'integration' | 'settings'> & {
  place: PlaceOrder;
  live: Live;
  /** Resolves when the order's problem is printed. */
  setAside: (serviceOrderId: string) => Promise<void>;
};

/** Starts the POS of IN_DOUBT and a gateway for SMS. Plays the staff, who find the ticket and answer by the link. */
export async function startGateway({ timeline, signal }: { timeline: Timeline; signal: AbortSignal }) {
  const key = `whsec_${randomBytes(32).toString('base64')}`;
  const webhook = new Webhook(key);
  let doubted: Promise<string> | undefined;

  const ask = async ({ text, orders, answerUrl }: Message): Promise<void> => {
    const serviceOrderId = (await doubted) ?? '';
    // The name and the link are left out.
    const sentences = text.split('\n\n').slice(1, -1).join(' ');
    timeline.print(serviceOrderId, 'staff', `get an SMS from the gateway: ${sentences}`);
    await sleep(LOOK_MS, undefined, { signal });
    for (const { noticeId } of orders) {
      const body = new URLSearchParams({ notice: noticeId, answer: 'there' });
      timeline.print(serviceOrderId, 'staff', 'answer by the link: it is there', 'good');
      const { status } = await fetch(answerUrl, { method: 'POST', body, redirect: 'manual', signal });
      if (status !== 303) timeline.print(serviceOrderId, 'service', `refuses the answer: ${status}`, 'bad');
    }
  };
  const server = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    const { data } = webhook.verify(body, request.headers as Record<string, string>) as { data: Message };
    response.writeHead(204).end();
    if (data.locationId === IN_DOUBT) void ask(data).catch(unless(signal));
  });
  const pos = await startStandard();
  pos.behave = ({ serviceOrderId }) => {
    timeline.print(serviceOrderId, 'POS', 'takes the order, but its answer is lost', 'bad');
    return 'drop-answer';
  };

  return {
    env: { NOTIFY_WEBHOOK_URL: server.url, NOTIFY_WEBHOOK_SECRET: key },
    /** Places an order whose answer is lost. The kitchen cooks it when the staff have answered. */
    async loseAnswer({ place, live, setAside, ...at }: About): Promise<void> {
      const { ordersUrl, secret } = pos.settings;
      const garden = { locationId: IN_DOUBT, integration: 'demo-till', settings: { ordersUrl, secret } };
      const webhookUrl = await setUpLocation({ ...at, ...garden });
      const webhookUrlOf = (id: string): Promise<string> => live.sent(id, signal).then(() => webhookUrl);
      cookOrders({ pos, webhookUrlOf, holds: new Map(), timeline, signal });
      doubted = place('pickup').then(async ({ serviceOrderId }) => {
        await setAside(serviceOrderId);
        return serviceOrderId;
      });
      await doubted;
    },
    stop: () => Promise.all([server.stop(), pos.stop()]),
  };
}
