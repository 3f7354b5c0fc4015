import type { ClientBase, Pool } from 'pg';
import { rankOf } from '../domain/lifecycle.ts';
import type { TranslatedWebhook } from '../domain/webhook.ts';
import type { StatusEvent } from '../domain/order.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { type Applied, applyWebhooks } from '../statuses/apply-webhooks.ts';
import { claimQuietOrders, type QuietOrder } from './claim-quiet-orders.ts';
import { attemptLimit } from '../domain/timing.ts';
import { Poison, TryAgain } from '../domain/errors.ts';
import type { Observe, Observed } from '../domain/observed.ts';
import type { Provider, Registry } from '../domain/provider.ts';
import { uuidV7 } from '../domain/uuid-v7.ts';
import { noteRequests } from '../egress/bounded-fetch.ts';
import { findLocation, type DecryptSettings } from '../locations/locations.ts';
import { askPos, type PosDeps } from '../locations/check-location.ts';
import { checkEvents } from '../statuses/translate-webhook-request.ts';

/** `saidMore`: the POS reported a later status, so a webhook is missing. `applied`: undefined if nothing was stored. */
type Recorded = { saidMore: boolean; applied: Applied | undefined };

type Known = {
  rank: number;
  providerOrderId: string | null;
  estimate: (Date | null)[] | null;
  tracking: string[] | null;
  now: Date;
};

/**
 * Applies the POS's response like a webhook if it contains news. A later status also marks the location's webhooks as
 * missing, in the same commit. A response without news is not stored, because storing it would count as news, and the
 * polls of the order would never slow down.
 */
export async function recordPoll(
  pool: Pool,
  { serviceOrderId, locationId, integration }: QuietOrder,
  events: readonly StatusEvent[],
): Promise<Recorded> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<Known>(
      `SELECT rank, provider_order_id AS "providerOrderId", estimate, tracking, clock_timestamp() AS now
       FROM orders WHERE service_order_id = $1::text FOR UPDATE`,
      [serviceOrderId],
    );
    const [known] = rows;
    if (known === undefined) return { saidMore: false, applied: undefined };
    const saidMore = events.some(({ status }) => rankOf(status) > known.rank);
    const namesPosId = known.providerOrderId === null && events.some((event) => event.providerOrderId !== undefined);
    if (!saidMore && !namesPosId && !events.some((event) => saysMore(event, known)))
      return { saidMore, applied: undefined };
    const answer = {
      id: uuidV7(),
      locationId,
      integration,
      receivedAt: known.now,
      headers: {},
      body: Buffer.from(JSON.stringify(events)),
      truncated: false,
      polled: true,
      events,
    } as const satisfies TranslatedWebhook;
    const applied = await applyWebhooks(client, [answer]);
    if (saidMore) {
      await client.query(
        `WITH missed AS (
           UPDATE placements SET missed = missed + 1 WHERE service_order_id = $1::text AND NOT $4::boolean
         )
         UPDATE location_polls SET missed_at = now() WHERE location_id = $2::text AND integration = $3::text`,
        [serviceOrderId, locationId, integration, await wasDropped(client, serviceOrderId, locationId)],
      );
    }
    return { saidMore, applied };
  });
}

/** Whether webhooks of the location were dropped since the order was sent. Then this webhook may have come too. */
async function wasDropped(client: ClientBase, serviceOrderId: string, locationId: string): Promise<boolean> {
  const { rows } = await client.query(
    // Only the newest is read: a location may have very many.
    `SELECT FROM placements WHERE service_order_id = $1::text AND finished_at < (
       SELECT received_at FROM webhooks
       WHERE location_id = $2::text AND outcome = 'dropped' AND day >= (now() AT TIME ZONE 'UTC')::date - 1
       ORDER BY id DESC LIMIT 1)`,
    [serviceOrderId, locationId],
  );
  return rows.length > 0;
}

/** True if the POS reports another time or link than last time. */
function saysMore(
  { estimatedReadyAt: ready, estimatedDeliveryAt: delivery, trackingUrl }: StatusEvent,
  { estimate, tracking }: Known,
): boolean {
  if (trackingUrl !== undefined && trackingUrl !== tracking?.[1]) return true;
  if (ready === undefined && delivery === undefined) return false;
  return [ready, delivery].some((time, nth) => (time && Date.parse(time)) !== estimate?.[nth + 1]?.getTime());
}

/** If this many calls to one vendor are under way, no more begin. */
const CALLS_OF_VENDOR = 128;
/** Longest duration of a call in seconds. It is shorter than the interval between two polls of one location. */
const CALL_MAX_S = 55;

type PollObserved = Extract<Observed, { what: 'poll' }>;

type PollDeps = PosDeps & {
  pool: Pool;
  registry: Registry;
  decryptSettings: DecryptSettings;
  /** Vendors with an open circuit are not polled. An answer closes the circuit. */
  breaker: {
    isOpen(integration: string): boolean;
    callEnded(location: { locationId: string; integration: string }, began: number): void;
  };
  observe: Observe;
  /** Called after a response was applied. */
  onApplied: (applied: Applied) => void;
};

export type StatusPoller = {
  /** Polls all orders that are due. @returns their number; the last calls may still be under way */
  poll(): Promise<number>;
  /** Aborts the calls under way. Their orders are polled again later. */
  stop(): Promise<void>;
};

/**
 * Polls the POS systems for quiet orders. A POS may lose a webhook, and without polls the member would never see the
 * order progress. A slow vendor does not delay the polls of other vendors.
 */
export function statusPoller(deps: PollDeps): StatusPoller {
  const stopping = new AbortController();
  const underWay = new Map<Promise<void>, string>();

  const start = (quiet: QuietOrder): void => {
    const polling = pollOrder(deps, quiet, stopping.signal).finally(() => underWay.delete(polling));
    underWay.set(polling, quiet.integration);
  };
  const canBePolled = ({ integration, readStatus }: Provider): boolean =>
    readStatus !== undefined &&
    !deps.breaker.isOpen(integration) &&
    [...underWay.values()].filter((each) => each === integration).length < CALLS_OF_VENDOR;

  return {
    async poll() {
      let polled = 0;
      while (!stopping.signal.aborted) {
        const integrations = [...deps.registry.values()].filter(canBePolled).map(({ integration }) => integration);
        const claimed = await claimQuietOrders(deps.pool, integrations, CALLS_OF_VENDOR);
        for (const quiet of claimed) start(quiet);
        polled += claimed.length;
        if (claimed.length < CALLS_OF_VENDOR) break;
        await Promise.race(underWay.keys());
      }
      return polled;
    },
    async stop() {
      stopping.abort();
      await Promise.all(underWay.keys());
    },
  };
}

/** Polls one order and stores the wait that the vendor requests. After an error, the order is polled again later. */
async function pollOrder(deps: PollDeps, quiet: QuietOrder, stopping: AbortSignal): Promise<void> {
  const { serviceOrderId, locationId, integration } = quiet;
  const began = performance.now();
  const requests = noteRequests(deps.posFetch);
  const { outcome, error } = await pollAndApply({ ...deps, posFetch: requests.fetch }, quiet, began, stopping);
  const milliseconds = performance.now() - began;
  if (error instanceof TryAgain && error.retryAfterMs !== undefined) {
    // An error of this write is ignored. The next poll is then too early, and the vendor requests the wait again.
    await deps.pool
      .query(
        `UPDATE location_polls SET next_poll_at = greatest(next_poll_at, now() + make_interval(secs => $2::float8))
         WHERE location_id = $1::text`,
        [locationId, error.retryAfterMs / 1_000],
      )
      .catch(() => {});
  }
  deps.observe({
    what: 'poll',
    outcome,
    serviceOrderId,
    locationId,
    integration,
    request: requests.last(),
    milliseconds,
    error,
  });
}

async function pollAndApply(
  deps: PollDeps,
  quiet: QuietOrder,
  began: number,
  stopping: AbortSignal,
): Promise<Pick<PollObserved, 'outcome' | 'error'>> {
  try {
    const location = await findLocation(deps.pool, quiet.locationId);
    // The location was removed, or it now uses another integration.
    if (location?.integration !== quiet.integration) return { outcome: 'not_asked', error: undefined };
    const { provider, settings } = await deps.decryptSettings(location);
    const events = await readStatus(deps, quiet, { provider, settings }, began, stopping);
    if (events === undefined) return { outcome: 'not_asked', error: undefined };
    if (events.length === 0) return { outcome: 'unknown', error: undefined };
    const { saidMore, applied } = await recordPoll(deps.pool, quiet, forOrder(quiet, events));
    if (applied !== undefined) deps.onApplied(applied);
    return { outcome: saidMore ? 'said_more' : 'nothing_new', error: undefined };
  } catch (error) {
    return { outcome: 'failed', error };
  }
}

/** Adds the polled order's id to events without one. @throws Poison if an event names another order */
function forOrder({ serviceOrderId }: QuietOrder, events: readonly StatusEvent[]): StatusEvent[] {
  return checkEvents(events).map((event) => {
    // guard: answer-about-order
    if ((event.serviceOrderId ?? serviceOrderId) !== serviceOrderId) throw new Poison('the answer names another order');
    return { ...event, serviceOrderId };
  });
}

async function readStatus(
  deps: PollDeps,
  quiet: QuietOrder,
  { provider, settings }: { provider: Provider; settings: unknown },
  began: number,
  stopping: AbortSignal,
): ReturnType<NonNullable<Provider['readStatus']>> {
  const { integration, order, providerOrderId } = quiet;
  const ref = { ...(providerOrderId !== null && { providerOrderId }) };
  const limit = { seconds: Math.min(attemptLimit(provider), CALL_MAX_S), sent: true, stopping };
  const events = await askPos(deps, { integration, provider, settings }, limit, async (context) =>
    provider.readStatus?.(ref, order, context),
  );
  // A failed read proves nothing about createOrder, which may use other endpoints.
  if (events !== undefined) deps.breaker.callEnded(quiet, began);
  return events;
}
