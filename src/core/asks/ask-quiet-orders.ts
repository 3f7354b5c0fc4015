import type { Pool } from 'pg';
import { attemptLimit } from '../domain/attempt-limit.ts';
import { Poison, TryAgain } from '../domain/errors.ts';
import type { Observe, Observed } from '../domain/observed.ts';
import type { StatusEvent } from '../domain/order.ts';
import type { Credentials, Provider, Registry } from '../domain/provider.ts';
import { withTimeout } from '../domain/with-timeout.ts';
import { findLocation, type OpenSettings } from '../locations/locations.ts';
import type { Now } from '../postgres/database-clock.ts';
import type { Applied } from '../statuses/apply-webhooks.ts';
import { checkEvents } from '../statuses/verify-and-translate.ts';
import { claimQuiet, type QuietOrder } from './claim-quiet.ts';
import { recordAnswer } from './record-answer.ts';

/** Calls at a time. */
const AT_ONCE = 32;

type AskObserved = Extract<Observed, { what: 'ask' }>;

export type AskDeps = {
  pool: Pool;
  registry: Registry;
  open: OpenSettings;
  now: Now;
  credentialsFor: (integration: string) => Credentials;
  posFetch: typeof fetch;
  parkTtlS: number;
  /** Nobody asks a vendor that does not answer; whether one does is told to it. */
  breaker: {
    isOpen(integration: string): boolean;
    callEnded(location: { locationId: string; integration: string }, began: number, error?: unknown): void;
  };
  observe: Observe;
  /** Called when an answer has been applied. */
  onApplied: (applied: Applied) => void;
};

/**
 * Asks the POS systems about all orders that are quieter than they should be, until nobody is left whose turn it is. A
 * webhook may be lost at its sender; without it, the member's order would stand still for ever.
 * @param stopping ends it between two rounds
 */
export async function askQuietOrders(deps: AskDeps, stopping: AbortSignal): Promise<void> {
  const canBeAsked = [...deps.registry.values()].filter(
    ({ integration, readStatus }) => readStatus !== undefined && !deps.breaker.isOpen(integration),
  );
  const integrations = canBeAsked.map(({ integration }) => integration);
  let claimed: QuietOrder[];
  do {
    claimed = await claimQuiet(deps.pool, integrations, AT_ONCE);
    await Promise.all(claimed.map((quiet) => askAbout(deps, quiet)));
  } while (claimed.length === AT_ONCE && !stopping.aborted);
}

async function askAbout(deps: AskDeps, quiet: QuietOrder): Promise<void> {
  const { serviceOrderId, locationId, integration } = quiet;
  const began = performance.now();
  const { outcome, error } = await answerAbout(deps, quiet, began);
  deps.observe({
    what: 'ask',
    outcome,
    serviceOrderId,
    locationId,
    integration,
    milliseconds: performance.now() - began,
    error,
  });
  const restMs = error instanceof TryAgain ? (error.retryAfterMs ?? 0) : 0;
  await deps.pool.query(
    `WITH asked AS (
       UPDATE placements
       SET asked_at = now(), asks = least(asks + 1, 15) -- the power of it is a rest
       WHERE service_order_id = $1::text
     )
     UPDATE location_asks SET next_ask_at = greatest(next_ask_at, now() + make_interval(secs => $3::float8))
     WHERE location_id = $2::text AND $3::float8 > 0`,
    [serviceOrderId, locationId, restMs / 1_000],
  );
}

/** Asks, and applies the answer. Whatever goes wrong, the order is asked about again. */
async function answerAbout(
  deps: AskDeps,
  quiet: QuietOrder,
  began: number,
): Promise<Pick<AskObserved, 'outcome' | 'error'>> {
  try {
    const location = await findLocation(deps.pool, quiet.locationId);
    // It was moved or removed just now.
    if (location?.integration !== quiet.integration) return { outcome: 'not_asked', error: undefined };
    const { provider, settings } = await deps.open(location);
    const events = await readStatus(deps, quiet, provider, settings, began);
    if (events === undefined) return { outcome: 'not_asked', error: undefined };
    if (events.length === 0) return { outcome: 'unknown', error: undefined };
    const { toldMore, applied } = await recordAnswer(deps.pool, quiet, aboutIt(quiet, events), deps.parkTtlS);
    if (applied !== undefined) deps.onApplied(applied);
    return { outcome: toldMore ? 'told_more' : 'nothing_new', error: undefined };
  } catch (error) {
    return { outcome: 'failed', error };
  }
}

/** It is what was asked about, whether or not the answer repeats our id. @throws Poison if it names another */
function aboutIt({ serviceOrderId }: QuietOrder, events: readonly StatusEvent[]): StatusEvent[] {
  return checkEvents(events).map((event) => {
    if ((event.serviceOrderId ?? serviceOrderId) !== serviceOrderId) throw new Poison('the answer is of another order');
    return { ...event, serviceOrderId };
  });
}

async function readStatus(
  { now, credentialsFor, posFetch, breaker }: AskDeps,
  quiet: QuietOrder,
  provider: Provider,
  settings: unknown,
  began: number,
): ReturnType<NonNullable<Provider['readStatus']>> {
  const { integration, order, providerOrderId } = quiet;
  const withinMs = attemptLimit(provider) * 1_000;
  try {
    const events = await withTimeout(
      withinMs,
      async (signal) =>
        provider.readStatus?.({ ...(providerOrderId !== null && { providerOrderId }) }, order, {
          settings,
          signal,
          now: now(),
          credentials: credentialsFor(integration),
          fetch: posFetch,
        }),
      () => new TryAgain(`no answer in ${withinMs} ms`, { sent: true }),
    );
    if (events !== undefined) breaker.callEnded(quiet, began);
    return events;
  } catch (error) {
    breaker.callEnded(quiet, began, error);
    throw error;
  }
}
