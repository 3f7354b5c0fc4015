import type { Pool } from 'pg';
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
import { findLocation, type OpenSettings } from '../locations/locations.ts';
import { askPos, type PosDeps } from '../locations/check-location.ts';
import { checkEvents } from '../statuses/translate-webhook-request.ts';

/** What an answer was worth. `saidMore`: a webhook is missing; `applied`: what it changed, if it was stored. */
type Recorded = { saidMore: boolean; applied: Applied | undefined };

type Known = {
  rank: number;
  providerOrderId: string | null;
  estimate: (Date | null)[] | null;
  tracking: string[] | null;
  now: Date;
};

/**
 * Applies what the POS answered, as a webhook would have been, if it says more than we know, in one commit with that its
 * location misses webhooks. An answer that says nothing new is not stored: an order would never come to rest.
 * @param parkTtlS seconds for which an unknown POS id may still become ours
 */
export async function recordPoll(
  pool: Pool,
  { serviceOrderId, locationId, integration }: QuietOrder,
  events: readonly StatusEvent[],
  parkTtlS: number,
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
    const applied = await applyWebhooks(client, [answer], parkTtlS);
    if (saidMore) {
      await client.query(
        `WITH missed AS (
           UPDATE placements SET missed = missed + 1 WHERE service_order_id = $1::text
         )
         UPDATE location_polls SET missed_at = now() WHERE location_id = $2::text AND integration = $3::text`,
        [serviceOrderId, locationId, integration],
      );
    }
    return { saidMore, applied };
  });
}

/** Whether the POS says another time or link than it said last. */
function saysMore(
  { estimatedReadyAt: ready, estimatedDeliveryAt: delivery, trackingUrl }: StatusEvent,
  { estimate, tracking }: Known,
): boolean {
  if (trackingUrl !== undefined && trackingUrl !== tracking?.[1]) return true;
  if (ready === undefined && delivery === undefined) return false;
  return [ready, delivery].some((time, nth) => (time && Date.parse(time)) !== estimate?.[nth + 1]?.getTime());
}

/** Calls to one vendor from which on no others to it begin. */
const OF_VENDOR = 128;
/** Seconds for an answer: over before the location's next turn. */
const ANSWER_MAX_S = 55;

type PollObserved = Extract<Observed, { what: 'poll' }>;

type PollDeps = PosDeps & {
  pool: Pool;
  registry: Registry;
  open: OpenSettings;
  parkTtlS: number;
  /** Nobody asks a vendor that does not answer; that one does is told to it. */
  breaker: {
    isOpen(integration: string): boolean;
    callEnded(location: { locationId: string; integration: string }, began: number): void;
  };
  observe: Observe;
  /** Called when an answer has been applied. */
  onApplied: (applied: Applied) => void;
};

export type StatusPoller = {
  /** Asks about all orders whose turn it is now. @returns how many; the last answers may still be to come */
  poll(): Promise<number>;
  /** Gives up what is under way: it is asked again. */
  stop(): Promise<void>;
};

/**
 * Asks the POS systems about orders that are quieter than they should be. A webhook may be lost at its sender; without
 * it, the member's order would stand still for ever. Nobody waits for a vendor that takes its time.
 */
export function statusPoller(deps: PollDeps): StatusPoller {
  const stopping = new AbortController();
  const underWay = new Map<Promise<void>, string>();

  const start = (quiet: QuietOrder): void => {
    const polling = pollOrder(deps, quiet, stopping.signal).finally(() => underWay.delete(polling));
    underWay.set(polling, quiet.integration);
  };
  const canBeAsked = ({ integration, readStatus }: Provider): boolean =>
    readStatus !== undefined &&
    !deps.breaker.isOpen(integration) &&
    [...underWay.values()].filter((each) => each === integration).length < OF_VENDOR;

  return {
    async poll() {
      let polled = 0;
      while (!stopping.signal.aborted) {
        const integrations = [...deps.registry.values()].filter(canBeAsked).map(({ integration }) => integration);
        const claimed = await claimQuietOrders(deps.pool, integrations, OF_VENDOR);
        for (const quiet of claimed) start(quiet);
        polled += claimed.length;
        if (claimed.length < OF_VENDOR) break;
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

/** Asks, and waits as long as the vendor says. Whatever goes wrong, the order is asked about again. */
async function pollOrder(deps: PollDeps, quiet: QuietOrder, stopping: AbortSignal): Promise<void> {
  const { serviceOrderId, locationId, integration } = quiet;
  const began = performance.now();
  const requests = noteRequests(deps.posFetch);
  const { outcome, error } = await pollAndApply({ ...deps, posFetch: requests.fetch }, quiet, began, stopping);
  const milliseconds = performance.now() - began;
  if (error instanceof TryAgain && error.retryAfterMs !== undefined) {
    // If this cannot be noted, the vendor says it again.
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

/** Asks, and applies the answer. */
async function pollAndApply(
  deps: PollDeps,
  quiet: QuietOrder,
  began: number,
  stopping: AbortSignal,
): Promise<Pick<PollObserved, 'outcome' | 'error'>> {
  try {
    const location = await findLocation(deps.pool, quiet.locationId);
    // It was moved or removed just now.
    if (location?.integration !== quiet.integration) return { outcome: 'not_asked', error: undefined };
    const { provider, settings } = await deps.open(location);
    const events = await readStatus(deps, quiet, { provider, settings }, began, stopping);
    if (events === undefined) return { outcome: 'not_asked', error: undefined };
    if (events.length === 0) return { outcome: 'unknown', error: undefined };
    const { saidMore, applied } = await recordPoll(deps.pool, quiet, aboutIt(quiet, events), deps.parkTtlS);
    if (applied !== undefined) deps.onApplied(applied);
    return { outcome: saidMore ? 'said_more' : 'nothing_new', error: undefined };
  } catch (error) {
    return { outcome: 'failed', error };
  }
}

/** It is what was asked about, whether or not the answer repeats our id. @throws Poison if it names another */
function aboutIt({ serviceOrderId }: QuietOrder, events: readonly StatusEvent[]): StatusEvent[] {
  return checkEvents(events).map((event) => {
    // guard: answer-about-order
    if ((event.serviceOrderId ?? serviceOrderId) !== serviceOrderId) throw new Poison('the answer is of another order');
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
  const limit = { seconds: Math.min(attemptLimit(provider), ANSWER_MAX_S), sent: true, stopping };
  const events = await askPos(deps, { integration, settings }, limit, async (context) =>
    provider.readStatus?.(ref, order, context),
  );
  // A read that fails says nothing of orders, which may go elsewhere.
  if (events !== undefined) deps.breaker.callEnded(quiet, began);
  return events;
}
