import type { FastifyInstance } from 'fastify';
import { type Config, tokenReader } from '../../config/config.ts';
import { statusPoller } from '../../core/polling/status-poller.ts';
import { workCancellations } from '../../core/cancellations/work-cancellations.ts';
import { workRefreshes } from '../../core/cancellations/refresh-order.ts';
import { findLocation } from '../../core/locations/locations.ts';
import { circuitBreaker } from '../../core/placements/circuit-breaker.ts';
import { recordSignals, type SignalOutcome } from '../../core/signals/record-signals.ts';
import { signalTokenAuthenticator } from '../../core/signals/signal-tokens.ts';
import { orderRefetcher, refetchUnlessRefused, retryUnread } from '../../core/placements/refetch-order.ts';
import { workPlacements } from '../../core/placements/work-placements.ts';
import { createPushTokenVerifier, type VerifyPushToken } from '../../http/pubsub-push.ts';
import { signalVerifier } from '../../http/verify-signal.ts';
import { loadOrderModule } from '../../platform/load-order-module.ts';
import type { Live } from './live.ts';
import type { Webhooks } from './webhooks.ts';
import type { RefetchOrder } from '../../core/placements/placement-job.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'providers'>;

export type Orders = Awaited<ReturnType<typeof ordersModule>>;

/** The deadline divided by this number is the time after which an order counts as missing. A read replica may lag. */
const MISSING_SHARE = 15;

/** Brings orders from the platform to the POS systems. */
export async function ordersModule(
  app: App,
  config: Config,
  about: { live: Live; webhooks: Pick<Webhooks, 'redrive' | 'onApplied'>; env: NodeJS.ProcessEnv },
) {
  const { live, webhooks } = about;
  const { database, providers, observability, log } = app;
  const { pool, clock } = database;
  const { observe } = observability;
  const { decryptSettings, credentialsFor, posFetch } = providers;
  const { PLACEMENT_DEADLINE_S: deadlineS } = config;
  const breaker = circuitBreaker(log);
  const calling = { pool, decryptSettings, now: clock.now, credentialsFor, posFetch, breaker, observe };
  const forward = {
    ...calling,
    refetch: refetchUnlessRefused(await refetcher(app, config, about.env)),
    deadlineS,
    log,
    onLive: live.notify,
  };
  const placements = workPlacements({
    ...forward,
    missingS: deadlineS / MISSING_SHARE,
    onAwaited: (posIds) => void webhooks.redrive(posIds),
  });
  const cancellations = workCancellations(forward);
  /** Wakes the workers after a change by an operator or a timer. */
  const wake = (): void => {
    placements.wakeForAll();
    cancellations.wake();
    live.notify();
  };
  const refreshes = workRefreshes({ ...forward, onDue: wake });
  const record = recordSignals(pool, deadlineS);
  const recordSignal = async (serviceOrderId: string): Promise<SignalOutcome> => {
    const outcome = await record(serviceOrderId);
    if (outcome === 'recorded') placements.wake();
    else refreshes.wake();
    live.board?.wake();
    return outcome;
  };
  const loops = { placements, refreshes, cancellations };
  const stop = (): Promise<unknown> => Promise.all(Object.values(loops).map((loop) => loop.stop()));
  return {
    push: { verifyPushToken: pushTokenVerifier(app, config), recordSignal, observe },
    signal: {
      authenticateToken: signalTokenAuthenticator(pool, config.SETTINGS_KEY, clock.now),
      verify: signalVerifier(clock.now, posFetch),
      recordSignal,
      observe,
    },
    wake,
    breaker,
    poller: statusPoller({ ...calling, registry: providers.registry, onApplied: webhooks.onApplied }),
    /** Its `stop` ends the claiming of new orders, and does not wait for running calls. `calls` waits for them. */
    claims: {
      name: 'claims',
      async start() {
        await retryUnread(pool).catch((error: unknown) =>
          log.warn({ err: error }, 'held orders could not be retried at start; they are retried within half a minute'),
        );
      },
      loops,
      stop: () => void stop(),
    },
    calls: { name: 'calls', stop },
  };
}

async function refetcher({ database, log }: App, config: Config, env: NodeJS.ProcessEnv): Promise<RefetchOrder> {
  return orderRefetcher({
    url: config.ORDER_API_URL,
    token: config.ORDER_API_TOKEN,
    readToken: tokenReader(env),
    module: await loadOrderModule(config),
    countryOf: async (locationId) => (await findLocation(database.pool, locationId))?.country ?? null,
    warn: (problem) => log.warn(problem),
  });
}

/** https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions */
const PUSH_ISSUER = 'https://accounts.google.com';

function pushTokenVerifier({ database }: App, config: Config): VerifyPushToken | undefined {
  if (config.PUSH_AUTH === 'off') return undefined;
  return createPushTokenVerifier(
    {
      jwksUrl: config.PUSH_JWKS_URL,
      issuer: PUSH_ISSUER,
      audience: config.PUSH_AUDIENCE ?? '',
      serviceAccount: config.PUSH_SERVICE_ACCOUNT ?? '',
    },
    database.clock.now,
  );
}
