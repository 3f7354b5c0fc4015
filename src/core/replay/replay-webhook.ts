import { randomUUIDv7 } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { applyDeliveries, type Applied } from '../statuses/apply-webhooks.ts';
import type { Delivery, DeliveryOutcome, EventOutcome } from '../domain/webhook.ts';
import { blankDeliveries } from '../retention/erase-members.ts';
import { inTransaction } from '../postgres/in-transaction.ts';
import { isRefusalOfData } from '../postgres/is-data-error.ts';
import { GONE, findDelivery, readDelivery, type KeptDelivery } from './stored-webhook.ts';
import type { Status } from '../domain/lifecycle.ts';
import type { DeliveryKey } from './list-webhooks.ts';
import { redriveParked } from '../statuses/redrive-parked.ts';
import { translateAgain, type TranslatedAgain, type TranslatingAgain } from './retranslate.ts';
import { withClient } from '../postgres/with-client.ts';

export type Replaying = TranslatingAgain & {
  /** Seconds for which a POS id we do not know may still become ours. */
  parkTtlS: number;
  /** Nothing is kept of it: say what would become of it now. */
  dryRun: boolean;
};

/** Names orders, and nothing that a member or a POS wrote about them. */
export type Replayed = {
  /** The new delivery; null after a dry run. */
  deliveryId: string | null;
  /** The webhook that it replays. */
  replayOf: string;
  locationId: string;
  integration: string;
  outcome: DeliveryOutcome;
  /** Why it was dropped. */
  reason: string | null;
  events: {
    status: Status;
    serviceOrderId: string | null;
    providerOrderId: string | null;
    outcome: EventOutcome;
    /** It contradicts what we know: a person should look. */
    conflict: boolean;
  }[];
  /** Events of earlier deliveries that waited for a POS id which this one told. */
  redriven: number;
};

/**
 * Replays one kept delivery: translates it anew and applies it as a delivery of its own, as if it came now. Repeats do
 * no harm, as an order's status is the highest that it was told.
 * @returns what became of it, why it cannot be replayed, or undefined when there is no such delivery
 */
export async function replayDelivery(
  deps: Replaying,
  deliveryId: string,
): Promise<Replayed | { refused: string } | undefined> {
  const key = await findDelivery(deps.pool, deliveryId);
  return key && replayKept(deps, key);
}

/** The same by its key. */
export async function replayKept(
  deps: Replaying,
  key: DeliveryKey,
): Promise<Replayed | { refused: string } | undefined> {
  const kept = await readDelivery(deps.pool, key);
  if (kept === undefined) return undefined;
  if (kept.gone) return { refused: GONE };
  const translated = await translateAgain(deps, kept);
  if ('refused' in translated) return translated;

  const { delivery, applied } = await apply(deps, toDelivery(kept, translated, await now(deps.pool)));
  // What fails here the sweep does; the replay itself is stored.
  const redriven = deps.dryRun
    ? undefined
    : await redriveParked(deps.pool, { posIds: applied.newPosIds }, deps.parkTtlS).catch(() => undefined);
  return {
    deliveryId: deps.dryRun ? null : delivery.id,
    replayOf: delivery.replayOf.deliveryId,
    locationId: kept.locationId,
    integration: kept.integration,
    outcome: applied.deliveries[0] ?? 'ignored',
    reason: delivery.dropped ?? null,
    events: delivery.events.map((event, i) => ({
      status: event.status,
      serviceOrderId: event.serviceOrderId ?? null,
      providerOrderId: event.providerOrderId ?? null,
      outcome: applied.events[i] ?? 'unmatched',
      conflict: applied.conflicts.some((conflict) => conflict.event === event),
    })),
    redriven: redriven?.count ?? 0,
  };
}

type Replay = Delivery & { replayOf: NonNullable<Delivery['replayOf']> };

function toDelivery(kept: KeptDelivery, { events, dropped }: TranslatedAgain, receivedAt: Date): Replay {
  const delivery = {
    id: randomUUIDv7(),
    locationId: kept.locationId,
    integration: kept.integration,
    receivedAt,
    headers: kept.headers,
    body: kept.body,
    truncated: false,
    events,
    replayOf: { deliveryId: kept.replayOf ?? kept.deliveryId, receivedAt: kept.firstReceivedAt },
  };
  return dropped === undefined ? delivery : asDropped(delivery, dropped);
}

/** Without contents, which nobody could tell to be about an order: they go with the day of the webhook itself. */
function asDropped(delivery: Replay, dropped: string): Replay {
  return { ...delivery, headers: {}, body: Buffer.alloc(0), events: [], dropped };
}

/** One commit; and as at the door, one whose values Postgres refuses is dropped. */
async function apply(deps: Replaying, delivery: Replay): Promise<{ delivery: Replay; applied: Applied }> {
  const applying = async (client: PoolClient): Promise<Applied> => {
    const applied = await applyDeliveries(client, [delivery], [], deps.parkTtlS);
    if (delivery.dropped === undefined) await blankWithWebhook(client, delivery);
    return applied;
  };
  try {
    // A dry run is the very statements, undone: any judgement of another kind could be wrong.
    const applied = deps.dryRun
      ? await withClient(deps.pool, (client) => rolledBack(client, () => applying(client)))
      : await inTransaction(deps.pool, applying);
    return { delivery, applied };
  } catch (error) {
    if (delivery.dropped !== undefined || !isRefusalOfData(error)) throw error;
    return apply(deps, asDropped(delivery, `Postgres refused what it says (${error.code})`));
  }
}

/** Where it was stored without contents, since it is about an erased order, the webhook and its replays are as well. */
async function blankWithWebhook(client: PoolClient, delivery: Replay): Promise<void> {
  const { rows } = await client.query<{ delivery_day: string; location_id: string; delivery_id: string }>(
    `SELECT day::text AS delivery_day, location_id, id AS delivery_id FROM deliveries
     WHERE day = ($1::timestamptz AT TIME ZONE 'UTC')::date AND location_id = $2 AND id = $3::uuid
       AND body = '' AND headers = '{}'`,
    [delivery.receivedAt.toISOString(), delivery.locationId, delivery.id],
  );
  if (rows.length > 0) await blankDeliveries(client, rows);
}

async function rolledBack<Result>(client: PoolClient, work: () => Promise<Result>): Promise<Result> {
  await client.query('BEGIN');
  try {
    return await work();
  } finally {
    await client.query('ROLLBACK').catch((error: unknown) => {
      // No error of Postgres's own: the connection may still be in the transaction, and must not be lent again.
      throw new Error('could not be rolled back', { cause: error });
    });
  }
}

/** By the clock that all processes share. */
async function now(pool: Pool): Promise<Date> {
  const { rows } = await pool.query<{ now: Date }>('SELECT clock_timestamp() AS now');
  if (rows[0] === undefined) throw new Error('Postgres did not tell the time');
  return rows[0].now;
}
