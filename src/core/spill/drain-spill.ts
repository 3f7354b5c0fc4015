import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { unnestRows } from '../postgres/sql-rows.ts';
import { decryptSpilled, type SpilledWebhook } from './spill-webhook.ts';
import { toCauseText } from '../domain/cause-text.ts';
import type { Log } from '../domain/log.ts';
import type { Observe } from '../domain/observed.ts';
import type { Drop, Translated, TranslatedWebhook, WebhookHeaders } from '../domain/webhook.ts';
import { selectApplication, type DecryptSettings, type SealedSettings } from '../locations/locations.ts';
import type { BatchWebhooks } from '../statuses/batch-webhooks.ts';
import { storeArrived, type StoreDeps, NOT_STORED, type NotStored } from '../statuses/store-webhooks.ts';
import { translateArrived, type TranslateRules } from '../statuses/translate-webhook-request.ts';

/** Postgres's data about a spilled webhook. */
type Looked = {
  /** True if it is stored already: Postgres had committed it after all, or the message was delivered before. */
  isStored: boolean;
  /** True if its token was valid when it arrived. */
  wasValid: boolean;
  /** Its present location, if it still exists. */
  location: ({ integration: string } & SealedSettings) | undefined;
  ageMs: number;
};

const SPILLED = unnestRows<SpilledWebhook>([
  ['id', 'uuid', (spilled) => spilled.id],
  ['location_id', 'text', (spilled) => spilled.locationId],
  ['token_id', 'uuid', (spilled) => spilled.tokenId],
  ['received_at', 'timestamptz', (spilled) => spilled.receivedAt],
]);

const LOOK_UP = `
  SELECT EXISTS (SELECT FROM webhooks w
                 WHERE w.day = (s.received_at AT TIME ZONE 'UTC')::date AND w.location_id = s.location_id
                   AND w.id = s.id) AS "isStored",
         coalesce((SELECT (t.revoked_at > s.received_at) IS NOT FALSE AND (t.expires_at > s.received_at) IS NOT FALSE
                   FROM webhook_tokens t WHERE t.token_id = s.token_id), false) AS "wasValid",
         (SELECT jsonb_build_object('integration', l.integration, 'sealedSettings', l.settings,
                                    'sealedApplication', ${selectApplication()})
          FROM locations l WHERE l.location_id = s.location_id) AS location,
         extract(epoch FROM clock_timestamp() - s.received_at)::float8 * 1000 AS "ageMs"
  FROM ${SPILLED.as('s')}
  ORDER BY s.nth`;

/** @returns one element for each webhook, in order */
async function lookUpSpilled(pool: Pool, spilled: readonly SpilledWebhook[]): Promise<Looked[]> {
  if (spilled.length === 0) return [];
  const { rows } = await pool.query<Omit<Looked, 'location'> & { location: Looked['location'] | null }>({
    name: 'look-up-spilled',
    text: LOOK_UP,
    values: SPILLED.values(spilled),
  });
  return rows.map(({ location, ...row }) => ({ ...row, location: location ?? undefined }));
}

/** A message of the spill subscription. Either `ack` or `nack` is called, once. */
export type SpillMessage = {
  data: Uint8Array;
  /** Milliseconds since the epoch, by Pub/Sub's clock. */
  publishedAt: number;
  ack(): void;
  /** Makes Pub/Sub deliver it again later, and in the end to the dead-letter topic. */
  nack(): void;
};

type DrainSpill = {
  receive(message: SpillMessage): void;
  /** Messages that are received and not drained yet, and when the oldest of them arrived as a webhook. */
  waiting(): { count: number; oldestAt: Date | null };
  /** Puts back the messages that were not begun, and resolves when the others are done. */
  stop(): Promise<void>;
};

/** Messages that are drained together, with one look-up and mostly one commit. */
const CHUNK = 64;
/** Time to gather messages before the first chunk, because they come in any order. */
const GATHER_MS = 50;
/** Time for a commit. It may be long, because no sender waits for it. */
const COMMIT_MS = 5_000;
/** Pause after a message was put back, because Postgres may be away or overloaded. */
const REST_MS = 1_000;
/** Pause after a chunk, as a share of its duration. It gives webhooks from the endpoint precedence. */
const SHARE = 1;

/** Stands for the provider of a webhook that is dropped before its provider is known. It names no headers. */
const NO_PROVIDER = {};

type Opened = { message: SpillMessage; spilled: SpilledWebhook };
type Prepared = Opened & { looked: Looked; webhook: TranslatedWebhook | NotStored };

type DrainDeps = StoreDeps &
  TranslateRules & {
    pool: Pool;
    decryptSettings: DecryptSettings;
    accept: BatchWebhooks['accept'];
    observe: Observe;
    log: Pick<Log, 'error'>;
  };

/**
 * Applies spilled webhooks like the endpoint, with the location's present settings. A message is acknowledged after its
 * commit. A redelivered message is detected by its id, so each webhook is applied once.
 */
export function drainSpill(deps: DrainDeps): DrainSpill {
  let received: SpillMessage[] = [];
  let running: Promise<void> | undefined;
  let isStopping = false;
  let restUntil = -Infinity;
  const { underWay, settle, putBack, open, prepare, apply } = stepsOf(deps, () => {
    restUntil = performance.now() + REST_MS;
  });

  /**
   * Takes the oldest messages. Pub/Sub delivers in any order, but a status that is applied after a later one is stale,
   * and the member is not notified of it. So the oldest of the received webhooks is applied first.
   */
  const openNext = async (): Promise<Opened[]> => {
    received.sort((one, other) => one.publishedAt - other.publishedAt);
    const chunk = received.splice(0, CHUNK);
    for (const message of chunk) underWay.set(message, undefined);
    const opened = present(await Promise.all(chunk.map(open)));
    return opened.sort((one, other) => one.spilled.receivedAt.getTime() - other.spilled.receivedAt.getTime());
  };

  const prepareNext = async (): Promise<Prepared[]> => {
    const opened = await openNext();
    const all = opened.map(({ spilled }) => spilled);
    const looked = await lookUpSpilled(deps.pool, all).catch((error: unknown) => {
      for (const { message } of opened) putBack(message, error);
    });
    if (looked === undefined) return [];
    const preparing = opened.map(async (each, nth) => {
      const about = looked[nth];
      if (about?.isStored === false) return prepare(each, about);
      deps.observe({ what: 'drain', outcome: 'known' });
      return settle(each.message, 'ack');
    });
    return present(await Promise.all(preparing));
  };

  const run = async (): Promise<void> => {
    await sleep(GATHER_MS);
    // Chunks are applied one after the other to keep their order. The next chunk is prepared at the same time.
    let next = prepareNext();
    while (underWay.size > 0 || received.length > 0) {
      const chunk = await next;
      next = prepareNext();
      const began = performance.now();
      await Promise.all(chunk.map(apply));
      const now = performance.now();
      await sleep(Math.max(SHARE * (now - began), restUntil - now));
    }
    await next;
  };

  const start = (): void => {
    if (received.length === 0) return;
    running ??= run()
      .catch((error: unknown) => deps.log.error({ err: error }, 'draining the spill failed'))
      .finally(() => {
        running = undefined;
        start();
      });
  };

  return {
    receive(message) {
      if (isStopping) return message.nack();
      received.push(message);
      start();
    },
    waiting() {
      const times = [...underWay.values()].flatMap((at) => at?.getTime() ?? []);
      return {
        count: received.length + underWay.size,
        oldestAt: times.length === 0 ? null : new Date(Math.min(...times)),
      };
    },
    async stop() {
      isStopping = true;
      for (const message of received) message.nack();
      received = [];
      await running;
    },
  };
}

function stepsOf(deps: DrainDeps, onPutBack: () => void) {
  /** When the webhook of each message arrived. Undefined until the message is decrypted. */
  const underWay = new Map<SpillMessage, Date | undefined>();

  const settle = (message: SpillMessage, by: 'ack' | 'nack'): undefined => {
    message[by]();
    underWay.delete(message);
  };

  const putBack = (message: SpillMessage, error: unknown): undefined => {
    deps.observe({ what: 'drain', outcome: 'put_back', error });
    onPutBack();
    return settle(message, 'nack');
  };

  const open = async (message: SpillMessage): Promise<Opened | undefined> => {
    try {
      // guard: spilled-id
      const spilled = await decryptSpilled(deps.keys, message.data);
      underWay.set(message, spilled.receivedAt);
      return { message, spilled };
    } catch (error) {
      deps.observe({ what: 'drain', outcome: 'not_decrypted', error });
      return settle(message, 'nack');
    }
  };

  const prepare = async ({ message, spilled }: Opened, looked: Looked): Promise<Prepared | undefined> => {
    try {
      const { provider, translated } = await translate(spilled, looked, deps);
      const webhook = await storeArrived(spilled, provider, translated, Date.now() + COMMIT_MS, deps);
      return { message, spilled, looked, webhook };
    } catch (error) {
      return putBack(message, error);
    }
  };

  const apply = async ({ message, spilled, looked, webhook }: Prepared): Promise<void> => {
    try {
      // guard: ack-after-commit
      const { outcome, serviceOrderIds } =
        webhook.id === null ? NOT_STORED : await deps.accept({ ...webhook, isLate: true }, Date.now() + COMMIT_MS);
      settle(message, 'ack');
      const { requestId, trace, integration, locationId, tokenId } = spilled;
      const about = { requestId, trace, milliseconds: looked.ageMs, integration, locationId, tokenId };
      const { id: webhookId, dropped } = webhook;
      deps.observe({ what: 'webhook', outcome, ...about, webhookId, serviceOrderIds, dropped, fromSpill: true });
    } catch (error) {
      putBack(message, error);
    }
  };

  return { underWay, settle, putBack, open, prepare, apply };
}

async function translate(
  spilled: SpilledWebhook,
  { wasValid, location }: Looked,
  deps: DrainDeps,
): Promise<{ provider: WebhookHeaders; translated: Translated }> {
  const dropped = whyDropped(spilled, wasValid, location?.integration);
  if (dropped !== undefined || location === undefined) {
    return { provider: NO_PROVIDER, translated: { events: [], dropped: dropped ?? NO_LOCATION, held: [] } };
  }
  const opened = await deps.decryptSettings({ ...location, locationId: spilled.locationId });
  return { provider: opened.provider, translated: translateArrived(spilled, opened, deps) };
}

function present<Value>(values: readonly (Value | undefined)[]): Value[] {
  return values.filter((value) => value !== undefined);
}

const NO_LOCATION: Drop = { reason: 'its location no longer exists', cause: { code: 'no_location' } };

/** @param integration the location's present integration; undefined if the location no longer exists */
function whyDropped(spilled: SpilledWebhook, wasValid: boolean, integration: string | undefined): Drop | undefined {
  if (integration === undefined) return NO_LOCATION;
  if (!wasValid) {
    return { reason: 'its token was revoked before it arrived', cause: { code: 'token_revoked' }, unproven: true };
  }
  if (integration === spilled.integration) return undefined;
  const now = toCauseText(integration);
  return {
    reason: `it arrived through "${toCauseText(spilled.integration)}", but its location now uses "${now}"`,
    cause: { code: 'other_integration', integration: now },
    unproven: true,
  };
}
