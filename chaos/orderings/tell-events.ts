import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { STATUSES, rankOf, type Status } from '../../src/core/domain/lifecycle.ts';
import { storeOrderRef } from '../../src/core/placements/placement-outcomes.ts';
import { redriveParked } from '../../src/core/statuses/redrive-parked.ts';
import { statusWebhook } from '../../test/support/start-system.ts';
import { until } from '../../test/support/until.ts';
import type { Players } from './start-players.ts';

const MULTISETS = 80;
const ORDERS_OF_EACH = 10;
const LOCATION = 'club-1';

/** A status that the POS reports with our id, its own id, or both. A POS may give one order two ids, `a` and `b`. */
type Said = { status: Status; ours: boolean; pos?: 'a' | 'b' | undefined };
/** A report, or the answer to createOrder, which has the POS id `a`. */
type Step = Said | 'answer';
/** The steps of one order. They go to the two processes in turn, the first one to `process`. */
export type Telling = { steps: readonly Step[]; process: number };

const said: fc.Arbitrary<Said> = fc
  .record({ status: fc.constantFrom(...STATUSES), ours: fc.boolean(), pos: fc.constantFrom('a', 'b', undefined) })
  .filter(({ ours, pos }) => ours || pos !== undefined);

/** Some events, each once or twice, and the answer. `drawTellings` shuffles them. */
const multiset: fc.Arbitrary<Step[]> = fc
  .array(fc.tuple(said, fc.integer({ min: 1, max: 2 })), { minLength: 1, maxLength: 4 })
  .map((events) => ['answer', ...events.flatMap(([event, times]) => Array.from({ length: times }, () => event))]);

/** Draws random events, each multiset of them in several orders. */
export function drawTellings(seed: number): Telling[] {
  return fc.sample(multiset, { numRuns: MULTISETS, seed }).flatMap((steps, nth) => {
    const whole = { minLength: steps.length, maxLength: steps.length };
    const orders = fc.sample(fc.shuffledSubarray(steps, whole), { numRuns: ORDERS_OF_EACH, seed: seed + nth });
    return orders.map((order, process) => ({ steps: order, process }));
  });
}

/** Returns tellings with one event less. */
export const withOneLess = ({ steps, process }: Telling): Telling[] =>
  steps.flatMap((step, nth) => (step === 'answer' ? [] : [{ steps: steps.toSpliced(nth, 1), process }]));

/** The correct result, whatever the order of the steps. Written from the design, without the service's own code. */
function expected(steps: readonly Step[]): { rank: number; posIds: string[] } {
  const events = steps.filter((step) => step !== 'answer');
  const posIds = new Set(['a', ...events.flatMap((event) => (event.ours && event.pos) || [])]);
  const heard = events.filter((event) => event.ours || (event.pos !== undefined && posIds.has(event.pos)));
  return { rank: Math.max(10, ...heard.map((event) => rankOf(event.status))), posIds: [...posIds].sort() };
}

/** Returns a function that sends each order its events, at two processes in turn, and returns the wrong results. */
export async function startTelling({
  system,
  post,
}: Players): Promise<(tellings: readonly Telling[]) => Promise<{ it: Telling; problem: string }[]>> {
  await system.addLocation(LOCATION, { ordersUrl: 'http://127.0.0.1:9/orders' });
  const url = await system.webhookUrl(LOCATION);
  const urls = system.urls.map((base) => url.replace(system.urls[0] ?? '', base));
  let rounds = 0;

  const tell = async (serviceOrderId: string, { steps, process }: Telling): Promise<void> => {
    const posId = (name: 'a' | 'b'): string => `${name}-${serviceOrderId}`;
    for (const [nth, step] of steps.entries()) {
      if (step === 'answer') {
        const ref = { providerOrderId: posId('a') };
        const { awaited } = await storeOrderRef(system.pool, serviceOrderId, 'standard', ref);
        for (const awaitedId of awaited) await redriveParked(system.pool, awaitedId);
        continue;
      }
      const webhook = statusWebhook({
        status: step.status,
        ...(step.ours && { serviceOrderId }),
        ...(step.pos && { providerOrderId: posId(step.pos) }),
      });
      await post(urls[(nth + process) % urls.length] ?? '', webhook);
    }
  };

  return async (tellings) => {
    rounds += 1;
    const cases = tellings.map((it, nth) => ({ it, id: `told-${rounds}-${nth}` }));
    await system.query(
      `WITH p AS (INSERT INTO placements (service_order_id, location_id, deadline_at, requested_at, next_attempt_at)
                  SELECT id, '${LOCATION}', now() + interval '1 h', now(), 'infinity' FROM unnest($1::text[]) AS id)
       INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, sequence)
       SELECT id, 'K472', '${LOCATION}', 'delivery', 1 FROM unnest($1::text[]) AS id`,
      [cases.map(({ id }) => id)],
    );
    const waiting = cases.values();
    const tellOn = async (): Promise<void> => {
      for (const { id, it } of waiting) await tell(id, it);
    };
    await Promise.all(Array.from({ length: 48 }, tellOn));
    // If an event is parked at the moment at which its POS id is stored, the sweep applies it later.
    await until(async () => {
      const [left] = await system.query(
        `SELECT (SELECT count(*) FROM parked_events JOIN provider_orders USING (location_id, integration, provider_order_id))
              + (SELECT count(*) FROM outbox) AS n`,
      );
      return Number(left?.['n']) === 0;
    });
    const rows = await system.query(
      `SELECT o.service_order_id AS id, o.rank, o.sequence, p.state,
              (SELECT array_agg(left(provider_order_id, 1) ORDER BY provider_order_id) FROM provider_orders x WHERE x.service_order_id = o.service_order_id) AS "posIds"
       FROM orders o JOIN placements p USING (service_order_id)`,
    );
    const byId = new Map(rows.map(({ id, ...row }) => [id, row]));
    const live = Map.groupBy(system.pubsub.published('order-status'), (message) => message.orderingKey);
    return cases.flatMap(({ id, it }) => {
      const { sequence, ...row } = byId.get(id) ?? {};
      const wanted = { ...expected(it.steps), state: 'sent' };
      const sequences = (live.get(id) ?? []).map(({ attributes }) => Number(attributes['sequence']));
      const whole = Array.from({ length: Number(sequence) - 1 }, (_, nth) => nth + 2);
      const isAsWanted = isDeepStrictEqual(row, wanted) && isDeepStrictEqual(sequences, whole);
      const came = JSON.stringify({ ...row, sequence, sequences });
      return isAsWanted ? [] : [{ it, problem: `told ${JSON.stringify(it)}: ${came}, not ${JSON.stringify(wanted)}` }];
    });
  };
}
