import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { STATUSES, type Status } from '../../../src/core/domain/lifecycle.ts';
import type { Conflict, PosId, TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import type { ReasonCode } from '../../../src/core/domain/reason-code.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { applyWebhooks, type Applied } from '../../../src/core/statuses/apply-webhooks.ts';
import { batchWebhooks } from '../../../src/core/statuses/batch-webhooks.ts';
import { redriveParked } from '../../../src/core/statuses/redrive-parked.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import { testPool } from '../../support/test-pool.ts';
import { translatedWebhook } from '../../support/translated-webhook.ts';
import { untilLocked } from '../../support/until-locked.ts';

const SEQUENCES = 50;

/** An event: `a` to `g` are orders of ours, `z` is nobody's; `p` to `s` are POS ids: `r` is known as that of `c`, `s` as that of `g`. */
type Said = {
  order?: 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g' | 'h' | 'z' | undefined;
  posId?: 'p' | 'q' | 'r' | 's' | undefined;
  status: Status;
  reason?: string | undefined;
  occurredAt?: string | undefined;
  code?: ReasonCode | undefined;
  /** Said where `occurredAt` is: it counts from then. */
  readyAt?: string | undefined;
  link?: string | undefined;
};

const said: fc.Arbitrary<Said> = fc
  .record({
    order: fc.constantFrom('a', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'z', undefined, undefined),
    posId: fc.constantFrom('p', 'p', 'q', 'r', 's', undefined, undefined),
    status: fc.constantFrom(...STATUSES),
    reason: fc.constantFrom(undefined, 'no buns', 'no cheese'),
    occurredAt: fc.constantFrom(undefined, '2026-01-31T18:30:00.000Z', '2026-01-31T18:31:00.000Z'),
    code: fc.constantFrom(undefined, 'closed', 'other'),
    readyAt: fc.constantFrom(undefined, '2026-01-31T19:00:00.000Z', '2026-01-31T19:05:00.000Z'),
    link: fc.constantFrom(undefined, 'https://courier.example/a', 'https://courier.example/B'),
  })
  .filter(({ order, posId }) => order !== undefined || posId !== undefined);

const pool = testPool({ max: 3, options: '-c enable_seqscan=off -c jit=off' });
beforeAll(async () => {
  await ensureWebhookPartitions(pool);
});

/**
 * Orders at the POS, of which only the POS ids of `c` and `g` are known. `d` was failed by us, `e` is not sent yet, the
 * member of `f` is erased, `g` was sent by another integration, and `h` was given up without a final status.
 */
async function layOrders(world: string): Promise<void> {
  await pool.query(
    `WITH o AS (
       INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence, failed_by_us,
                           provider_order_id, erased_at, ended_at)
       SELECT $1 || '-' || name, 'K472', $1, CASE name WHEN 'g' THEN 'till' ELSE 'standard' END, 'pickup',
              CASE name WHEN 'd' THEN 70 WHEN 'e' THEN 0 ELSE 10 END, 2, name = 'd',
              CASE name WHEN 'c' THEN $1 || '-r' WHEN 'g' THEN $1 || '-s' END, CASE name WHEN 'f' THEN now() END,
              CASE name WHEN 'h' THEN '2027-01-31 18:30'::timestamptz END
       FROM unnest('{a,b,c,d,e,f,g,h}'::text[]) AS name
       RETURNING service_order_id, integration, provider_order_id
     ), i AS (
       INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
       SELECT $1, integration, provider_order_id, service_order_id FROM o WHERE provider_order_id IS NOT NULL
     )
     INSERT INTO placements (service_order_id, location_id, deadline_at, requested_at, provider_order_id)
     SELECT service_order_id, $1, now(), now(), provider_order_id FROM o`,
    [world],
  );
}

const webhook = (world: string, events: readonly Said[]): TranslatedWebhook =>
  translatedWebhook(
    events.map(({ order, posId, status, reason, occurredAt, code, readyAt, link }) => ({
      status,
      ...(order !== undefined && { serviceOrderId: `${world}-${order}` }),
      ...(posId !== undefined && { providerOrderId: `${world}-${posId}` }),
      ...(reason !== undefined && { reason }),
      ...(occurredAt !== undefined && { occurredAt, estimatedReadyAt: readyAt, trackingUrl: link }),
      ...(code !== undefined && { reasonCode: code, itemIds: [code] }),
    })),
    { locationId: world, headers: { 'content-type': 'text/plain' } },
  );

const apply = (webhooks: readonly TranslatedWebhook[]): Promise<Applied> =>
  withClient(pool, (client) => applyWebhooks(client, webhooks));

/** Applies each of the batches, and then what waited. @returns all that came of it, without ids of webhooks and times */
async function tell(world: string, batches: readonly TranslatedWebhook[][]): Promise<unknown> {
  await layOrders(world);
  const conflicts: unknown[] = [];
  const awaited = new Map<string, PosId>();
  const orders: unknown[] = [];
  for (const batch of batches) {
    const applied = await apply(batch);
    orders.push(...applied.serviceOrderIds);
    conflicts.push(...applied.conflicts.map(({ event, serviceOrderId }) => [serviceOrderId, event.status]));
    for (const posId of applied.awaited) awaited.set(posId.providerOrderId, posId);
  }
  for (const [, posId] of [...awaited].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const redriven = await redriveParked(pool, posId);
    conflicts.push(...redriven.conflicts.map(({ event, serviceOrderId }) => [serviceOrderId, event.status]));
  }
  const all = { ...(await read(world)), orderOf: orders, conflicts };
  return JSON.parse(JSON.stringify(all).replaceAll(world, '')) as unknown;
}

/** All rows of a world, without its name. */
async function read(world: string): Promise<Record<string, unknown>> {
  const { rows } = await pool.query<{ all: string }>(
    `SELECT jsonb_build_object(
       'orders', (SELECT jsonb_agg(jsonb_build_array(service_order_id, rank, sequence, provider_order_id, reason,
                                                     reason_code, item_ids, estimate, tracking,
                                                     ended_at = '2027-01-31 18:30', ended_at IS NOT NULL) ORDER BY service_order_id)
                  FROM orders WHERE location_id = $1),
       'history', (SELECT jsonb_agg(to_jsonb(e) - '{event_id,webhook_id,recorded_at}'::text[]
                                    ORDER BY service_order_id, event_id)
                   FROM status_events e WHERE service_order_id ^@ ($1 || '-')),
       'live', (SELECT jsonb_agg(to_jsonb(l) - '{applied_at,first_received_at,lease_until,attempts}'::text[]
                                 ORDER BY service_order_id, sequence)
                FROM outbox l WHERE service_order_id ^@ ($1 || '-')),
       'posIds', (SELECT jsonb_agg(jsonb_build_array(provider_order_id, service_order_id) ORDER BY provider_order_id)
                  FROM provider_orders WHERE location_id = $1),
       'placements', (SELECT jsonb_agg(jsonb_build_array(service_order_id, state, provider_order_id) ORDER BY service_order_id)
                      FROM placements WHERE location_id = $1),
       'webhooks', (SELECT jsonb_agg(kept ORDER BY kept)
                    FROM (SELECT jsonb_build_array(service_order_id, outcome, events, body, headers) AS kept
                          FROM webhooks WHERE location_id = $1) AS w),
       'waiting', (SELECT jsonb_agg(to_jsonb(w) - '{webhook_id,parked_at}'::text[] ORDER BY provider_order_id, rank)
                   FROM parked_events w WHERE location_id = $1))::text AS all`,
    [world],
  );
  return JSON.parse((rows[0]?.all ?? '').replaceAll(world, '')) as Record<string, unknown>;
}

const together = (world: string, webhooks: readonly (readonly Said[])[]): Promise<unknown> =>
  tell(world, [webhooks.map((events) => webhook(world, events))]);
const oneByOne = (world: string, webhooks: readonly (readonly Said[])[]): Promise<unknown> =>
  tell(
    world,
    webhooks.flat().map((event) => [webhook(world, [event])]),
  );
const alone = (world: string, webhooks: readonly (readonly Said[])[]): Promise<unknown> =>
  tell(
    world,
    webhooks.map((events) => [webhook(world, events)]),
  );

/** All but the webhooks, which are more if each has one event. */
const effectOf = (result: unknown): object => ({ ...(result as object), webhooks: undefined });

describe('events in one batch have the same result as one by one', () => {
  it.each<[string, Said[]]>([
    [
      'two orders that claim one POS id: the first has it, the second is a conflict',
      [
        { order: 'a', posId: 'p', status: 'received' },
        { order: 'b', posId: 'p', status: 'received' },
      ],
    ],
    [
      'an order whose POS id an earlier event gave: all later messages have it',
      [
        { order: 'a', posId: 'p', status: 'received' },
        { order: 'a', status: 'ready' },
      ],
    ],
    [
      'an event with only a POS id, after the event that gives the id: it moves the order',
      [
        { order: 'a', posId: 'p', status: 'received' },
        { posId: 'p', status: 'ready' },
      ],
    ],
    [
      'an event with only a POS id, before the event that gives the id: it waits, and is applied',
      [
        { posId: 'p', status: 'ready' },
        { order: 'a', posId: 'p', status: 'received' },
        { order: 'a', status: 'in_progress' },
      ],
    ],
    [
      'an order that another integration sent: its POS id is learnt for this one, too',
      [
        { order: 'g', posId: 's', status: 'received' },
        { order: 'g', posId: 's', status: 'ready' },
      ],
    ],
    [
      'an order that gets two POS ids: it keeps the first',
      [
        { order: 'a', posId: 'q', status: 'received' },
        { order: 'a', posId: 'p', status: 'ready' },
      ],
    ],
  ])('%s', async (what, events) => {
    const world = what.replaceAll(/\W+/g, '-');
    const expected = effectOf(await oneByOne(`${world}-1`, [events]));
    expect(effectOf(await together(`${world}-2`, [events])), 'of one webhook').toEqual(expected);
    const several = events.map((event) => [event]);
    expect(effectOf(await together(`${world}-3`, several)), 'of several').toEqual(expected);
  });

  it('even if another batch gives the POS id to another order at the same moment', async () => {
    const world = 'meanwhile';
    const expected = await oneByOne(`${world}-1`, [
      [
        { order: 'a', posId: 'p', status: 'received' },
        { order: 'b', posId: 'p', status: 'ready' },
      ],
    ]);
    await layOrders(`${world}-2`);
    const other = await pool.connect();
    await other.query('BEGIN');
    await applyWebhooks(other, [webhook(`${world}-2`, [{ order: 'a', posId: 'p', status: 'received' }])]);
    const batches = batchWebhooks({
      pool,
      writers: 1,
      observe: () => {},
      onApplied: ({ conflicts }) => told.push(...conflicts),
      onRefused: (about) => expect(about).toBeUndefined(),
      onLocked: () => {},
    });
    const told: Conflict[] = [];
    const accepted = batches.accept(
      webhook(`${world}-2`, [{ order: 'b', posId: 'p', status: 'ready' }]),
      Date.now() + 5_000,
    );
    await untilLocked(pool);
    await other.query('COMMIT');
    other.release();
    expect(await accepted).toEqual({ outcome: 'applied', serviceOrderIds: [`${world}-2-b`] });
    expect(told.map(({ serviceOrderId }) => serviceOrderId)).toEqual([`${world}-2-b`]);
    const { orderOf, conflicts, ...rest } = effectOf(expected) as Record<string, unknown>;
    expect(orderOf).toEqual(['-a', '-b']);
    expect(conflicts).toEqual([['-b', 'ready']]);
    expect(effectOf(await read(`${world}-2`))).toEqual(rest);
  });

  it(`for ${SEQUENCES} random sequences (SEED=${SEED})`, async () => {
    const webhooks = fc.array(fc.array(said, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 6 });
    for (const [nth, sequence] of fc.sample(webhooks, { numRuns: SEQUENCES, seed: SEED }).entries()) {
      const words = `SEED=${SEED} told ${JSON.stringify(sequence)}`;
      const [all, each] = [await together(`all-${nth}-`, sequence), await alone(`each-${nth}-`, sequence)];
      expect(all, words).toEqual(each);
      expect(effectOf(all), words).toEqual(effectOf(await oneByOne(`one-${nth}-`, sequence)));
    }
  });

  it(`for ${SEQUENCES} random sequences of batches with one plain event for each order (SEED=${SEED})`, async () => {
    const plain = said.map(({ order, posId, status, reason, occurredAt }): Said => {
      const known = order === 'c' || posId === 's' ? posId : undefined;
      return { order: order ?? 'b', posId: known, status, reason, occurredAt };
    });
    const batch = fc.uniqueArray(plain, { selector: ({ order }) => order, minLength: 2, maxLength: 5 });
    const batches = fc.array(batch, { minLength: 1, maxLength: 4 });
    for (const [nth, sequence] of fc.sample(batches, { numRuns: SEQUENCES, seed: SEED }).entries()) {
      const [all, each] = [`plain-${nth}-`, `plain-each-${nth}-`];
      const webhooks = (world: string) => sequence.map((events) => events.map((event) => webhook(world, [event])));
      const alone = webhooks(each).flatMap((batch) => batch.map((one) => [one]));
      expect(await tell(all, webhooks(all)), `SEED=${SEED} told ${JSON.stringify(sequence)}`).toEqual(
        await tell(each, alone),
      );
    }
  });
});
