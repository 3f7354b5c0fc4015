import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { Config } from '../../config/config.ts';
import type { Observed } from '../../core/domain/observed.ts';
import type { Conflict, PosId } from '../../core/domain/webhook.ts';
import { tokenAuthenticator } from '../../core/locations/webhook-tokens.ts';
import { withClient } from '../../core/postgres/transactions.ts';
import { prepareToApply, type Applied } from '../../core/statuses/apply-webhooks.ts';
import { batchWebhooks, type BatchWebhooks } from '../../core/statuses/batch-webhooks.ts';
import { dropQuota, type DropQuota } from '../../core/statuses/drop-quota.ts';
import { REFUSED_QUOTA, UNPROVEN_QUOTA, refusedStorer } from '../../core/statuses/store-webhooks.ts';
import { redriveParked } from '../../core/statuses/redrive-parked.ts';
import { BATCH_WRITERS } from '../../database/open-database.ts';
import { tokenJudge } from '../../http/judge-token.ts';
import type { AnswerLimits } from '../../http/webhook-routes.ts';
import type { Live } from './live.ts';
import { spillModule } from './spill.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'providers' | 'pubsub'>;
type Notify = Pick<Live, 'notify'>;

export type Webhooks = ReturnType<typeof webhooksModule>;

/** Receives webhooks in batches, applies them, and spills them while Postgres takes no writes. */
export function webhooksModule(app: App, config: Config, { live, limits }: { live: Notify; limits: AnswerLimits }) {
  const { database, observability, providers, log } = app;
  const { now } = database.clock;
  const { observe } = observability;
  const keys = config.SETTINGS_KEY;
  const effects = effectsOf(app, live);
  const batches = batchesOf(app, effects);
  const quotas = quotasOf(app);
  const keeping = {
    keys,
    quota: quotas.dropped,
    publicUrl: config.PUBLIC_URL ?? '',
    bodyLimit: config.WEBHOOK_BODY_LIMIT,
  };
  const spill = spillModule(config, {
    ...keeping,
    connection: app.pubsub,
    pool: database.pool,
    decryptSettings: providers.decryptSettings,
    now,
    accept: batches.drained.accept,
    observe,
    log,
  });
  if (spill !== undefined) database.onChange(spill.onDatabase);
  const keepsRefused = config.REFUSED_KEEP > 0;
  return {
    ...effects,
    endpoint: {
      now,
      ...keeping,
      judgeToken: tokenJudge(
        tokenAuthenticator(database.pool, providers.decryptSettings, now),
        database.watch,
        spill?.list,
      ),
      accept: batches.arrived.accept,
      watch: database.watch,
      spill: spill?.put,
      storeRefused: keepsRefused
        ? refusedStorer({ keys, quota: quotas.refused, accept: batches.refused.accept })
        : undefined,
      observe,
      bodyBudget: config.BODY_BUDGET,
      limits,
    },
    /** Undefined if SPILL_TOPIC is unset. */
    spill,
    writeNotStored: quotas.write,
    notStored: {
      name: 'webhooks not stored',
      stop: () =>
        quotas
          .write()
          .catch((error: unknown) => log.warn({ err: error }, 'a count of webhooks that were not stored is lost')),
    },
    batches: {
      name: 'batches',
      start: () => prepareWriters(database.flushPool),
      stop: () => Promise.all(Object.values(batches).map((each) => each.drain())),
    },
    spilled: { name: 'spill', stop: () => spill?.stop() },
  };
}

type Effects = {
  /** Applies the parked events of these POS ids. It logs failures, and its promise never rejects. */
  redrive(posIds: readonly PosId[]): Promise<void>;
  /** Call this after webhooks were applied: it reports conflicts, notifies readers and redrives parked events. */
  onApplied(applied: Applied): void;
};

/** Makes the actions that follow a webhook's commit. */
function effectsOf({ database, observability, log }: Omit<App, 'providers' | 'pubsub'>, live: Notify): Effects {
  const { observe } = observability;
  const redrive = async (posIds: readonly PosId[]): Promise<void> => {
    for (const posId of posIds) {
      const began = performance.now();
      try {
        const { count, serviceOrderId, conflicts } = await redriveParked(database.pool, posId);
        for (const conflict of conflicts) observe(toObserved(conflict));
        if (count === 0) continue;
        observe({ what: 'redrive', serviceOrderIds: [serviceOrderId], milliseconds: performance.now() - began });
        live.notify();
      } catch (error) {
        log.warn({ ...posId, err: error }, 'parked events could not be applied; the sweep retries them');
      }
    }
  };
  return {
    redrive,
    onApplied(applied) {
      for (const conflict of applied.conflicts) observe(toObserved(conflict));
      if (applied.events.includes('applied')) live.notify();
      void redrive(applied.awaited);
    },
  };
}

/** Copies only these fields, because the result is logged and other fields of an event may contain member data. */
function toObserved({ webhookId, locationId, integration, serviceOrderId, event: { status } }: Conflict): Observed {
  return { what: 'conflict', webhookId, locationId, integration, serviceOrderId, status };
}

/** Makes the batches. Spilled and refused webhooks have separate batches, so arriving webhooks never wait for them. */
function batchesOf(
  { database, observability, log }: App,
  { onApplied }: Effects,
): Record<'arrived' | 'drained' | 'refused', BatchWebhooks> {
  const batching = {
    pool: database.flushPool,
    observe: observability.observe,
    onRefused: (about: object) => log.warn(about, 'Postgres refuses a batch of webhooks'),
    onLocked: ({ locationId, id, events }: Parameters<Batching['onLocked']>[0]) =>
      log.warn(
        { locationId, webhookId: id, serviceOrderIds: events.map((event) => event.serviceOrderId) },
        'a row is locked: webhooks about the same orders wait for it',
      ),
    onApplied,
  };
  return {
    arrived: batchWebhooks({ ...batching, writers: BATCH_WRITERS }),
    drained: batchWebhooks({ ...batching, writers: 1 }),
    // Refused webhooks use `pool`, so that they take no connection from accepted webhooks.
    refused: batchWebhooks({ ...batching, pool: database.pool, writers: 1 }),
  };
}
type Batching = Parameters<typeof batchWebhooks>[0];

/** Prepares a connection for each batch writer. Without Postgres nothing is prepared, which only makes the first webhooks slower. */
async function prepareWriters(pool: Pool): Promise<void> {
  const writers = Array.from({ length: BATCH_WRITERS }, () => withClient(pool, prepareToApply));
  await Promise.allSettled(writers);
}

/** Makes the limits on webhooks that are stored for one location although nothing proves that the POS sent them. */
function quotasOf({ database, log }: App): Record<'dropped' | 'refused', DropQuota> & { write(): Promise<void> } {
  const { pool, clock } = database;
  const dropped = dropQuota(pool, {
    table: 'dropped_bytes',
    bytes: UNPROVEN_QUOTA,
    now: clock.now,
    onSpent: (locationId) =>
      log.error(
        { locationId },
        'dropped webhooks exceed the quota of their location, and nothing proves that the POS sent them: no more are stored today',
      ),
  });
  const refused = dropQuota(pool, {
    table: 'refused_bytes',
    bytes: REFUSED_QUOTA,
    now: clock.now,
    onSpent: (locationId) =>
      log.warn({ locationId }, 'too many webhooks were refused for an old token: no more of them are stored today'),
  });
  return {
    dropped,
    refused,
    async write() {
      await Promise.all([dropped.write(), refused.write()]);
    },
  };
}
