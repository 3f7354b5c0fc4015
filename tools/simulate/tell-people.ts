/** The people who are told: a contact of each restaurant, who may answer, and the operators' pager. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { chance } from '../chaos/chance.ts';
import type { History } from '../chaos/history.ts';
import type { Kitchen } from '../chaos/send-status.ts';
import type { Served } from '../chaos/serve-orders.ts';
import { agreesToCancel, ticketOf } from '../chaos/settle.ts';
import type { Contact } from '../../src/core/contacts/contact.ts';
import type { ToldOrder } from '../../src/core/notices/notice-texts.ts';
import type { Message } from '../../world/pubsub/queue-messages.ts';
import { readBody, serveHttp } from '../../world/network/serve-http.ts';

export const GATEWAY_SECRET = `whsec_${Buffer.from('the secret of the gateway').toString('base64')}`;
export const CONTACTS: Contact[] = [{ name: 'Owner', phone: '+49301234567', via: 'webhook' }];
/** The share of messages that are answered, and the longest time until then. */
const ANSWERS = { share: 0.5, mostMs: 5_000 };
const ANSWER_MS = 5_000;

type Notified = { id: string; data: { locationId: string; orders: ToldOrder[]; answerUrl: string } };

export type Told = {
  /** The URL of the gateway that sends the messages to the contacts. */
  url: string;
  /** Complains about contacts who were told twice. */
  check(complain: (why: string) => void): void;
  /** Whether the contact of a location was told about an order. */
  has(locationId: string, callOutCode: string): boolean;
};

/** Starts the gateway. Contacts answer what is true in their kitchen. */
export async function startGateway(about: {
  seed: number;
  pool: Pool;
  history: History;
  kitchens: readonly Kitchen[];
  reported: () => Served['reported'];
}): Promise<Told> {
  const { seed, pool, history, kitchens, reported } = about;
  const told = new Map<string, Notified>();

  /** The true answer to a notice. */
  const answerTo = async ({ noticeId, reason }: ToldOrder): Promise<string> => {
    // Nobody changes a ticket here.
    if (reason === 'changed') return 'too_late';
    if (reason !== 'in_doubt' && reason !== 'cancel_by_phone') return 'seen';
    const { rows } = await pool.query<{ order: string }>(
      'SELECT service_order_id AS "order" FROM notices WHERE notice_id::text = $1',
      [noticeId],
    );
    const [{ order } = { order: '' }] = rows;
    const ticket = ticketOf(kitchens, order);
    if (reason === 'in_doubt') return ticket === undefined ? 'not_there' : 'there';
    const isCancelled = agreesToCancel(ticket, reported().get(order));
    if (isCancelled && ticket !== undefined) ticket.cancelled ??= {};
    return isCancelled ? 'cancelled' : 'too_late';
  };
  const answer = async ({ id, data: { orders, answerUrl } }: Notified): Promise<void> => {
    const drawn = chance(seed, 'answers', id);
    if (drawn > ANSWERS.share) return;
    await sleep((drawn / ANSWERS.share) * ANSWERS.mostMs);
    for (const order of orders) {
      const said = await answerTo(order);
      const body = new URLSearchParams({ notice: order.noticeId, answer: said }).toString();
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const signal = AbortSignal.timeout(ANSWER_MS);
      const answered = await fetch(answerUrl, { method: 'POST', headers, body, redirect: 'manual', signal }).catch(
        () => undefined,
      );
      history.note('contact answered', { notice: order.noticeId, said, status: answered?.status });
    }
  };
  const gateway = await serveHttp(async (request, response) => {
    const message = JSON.parse((await readBody(request)).toString()) as Notified;
    const isNew = !told.has(message.id);
    // A repeat has a new link, and may leave out what was settled meanwhile.
    told.set(message.id, message);
    history.note('contact told', {
      message: message.id,
      orders: message.data.orders.map((each) => `${each.callOutCode} ${each.reason}`),
    });
    response.writeHead(204).end();
    if (isNew) void answer(message);
  });
  const all = (): { key: string; id: string }[] =>
    [...told.values()].flatMap(({ id, data: { locationId, orders } }) =>
      orders.map(({ callOutCode, reason, since }) => ({
        key: `${locationId} ${callOutCode} ${reason} ${String(since)}`,
        id,
      })),
    );
  return {
    url: gateway.url,
    check(complain) {
      for (const [key, each] of Map.groupBy(all(), ({ key }) => key)) {
        if (each.length > 1) complain(`${key} is in the messages ${each.map(({ id }) => id).join(' and ')}`);
      }
    },
    has: (locationId, callOutCode) => all().some(({ key }) => key.startsWith(`${locationId} ${callOutCode} failed `)),
  };
}

const TOLD_MS = 60_000;

/** A reader of the pager's topic takes the newest event of each need. It must be what the service knows. */
export async function checkPager(
  pool: Pool,
  published: readonly Message[],
  complain: (why: string) => void,
): Promise<void> {
  type Event = { id: string; sequence: number; event: string };
  type Item = { id: string; isClosed: boolean; isTold: boolean };
  let wrong: string[] = [];
  for (let ms = 0; ms < TOLD_MS && (ms === 0 || wrong.length > 0); ms += 1_000) {
    await sleep(1_000);
    const { rows: items } = await pool.query<Item>(
      `SELECT item_key AS id, closed_at IS NOT NULL AS "isClosed", published_sequence = sequence AS "isTold"
       FROM attention_items`,
    );
    const newest = new Map<string, Event>();
    for (const { data } of published) {
      const event = JSON.parse(data.toString()) as Event;
      if (event.sequence > (newest.get(event.id)?.sequence ?? 0)) newest.set(event.id, event);
    }
    // Something may have been told since the items were read.
    wrong = items.flatMap(({ id, isClosed, isTold }) => {
      const { event } = newest.get(id) ?? { event: 'closed' };
      if (!isTold) return [`${id} is not told`];
      return (event === 'closed') === isClosed
        ? []
        : [`${id} is ${isClosed ? 'closed' : 'open'}, and the pager knows it as ${event}`];
    });
  }
  for (const why of wrong) complain(why);
}
