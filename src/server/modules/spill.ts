import type { Pool } from 'pg';
import type { Config } from '../../config/config.ts';
import type { Log } from '../../core/domain/log.ts';
import type { Observe } from '../../core/domain/observed.ts';
import { tokenList, type TokenList } from '../../core/locations/token-list.ts';
import type { DecryptSettings } from '../../core/locations/locations.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import { drainSpill } from '../../core/spill/drain-spill.ts';
import { NONE_WAITING, type SpillState, type SpillWebhook, webhookSpiller } from '../../core/spill/spill-webhook.ts';
import type { BatchWebhooks } from '../../core/statuses/batch-webhooks.ts';
import type { StoreDeps } from '../../core/statuses/store-webhooks.ts';
import type { TranslateRules } from '../../core/statuses/translate-webhook-request.ts';
import type { PubsubConnection } from '../../pubsub/pubsub-connection.ts';
import { spillTopic } from '../../pubsub/spill-topic.ts';

type Spill = {
  list: TokenList;
  put: SpillWebhook;
  state(): SpillState;
  /** Starts reading the spill when Postgres takes writes, and stops reading when it is away. */
  onDatabase(isAway: boolean): void;
  stop(): Promise<void>;
};

/** While Postgres is away, known tokens are accepted for this many seconds, even if they are revoked meanwhile. */
const TOKEN_AGE_S = 3_600;

/** Builds the spill: the list of tokens in memory, the writer and the reader. Undefined if SPILL_TOPIC is unset. */
export function spillModule(
  config: Pick<Config, 'SPILL_TOPIC'>,
  deps: StoreDeps &
    TranslateRules & {
      connection: PubsubConnection | undefined;
      pool: Pool;
      decryptSettings: DecryptSettings;
      now: Now;
      accept: BatchWebhooks['accept'];
      observe: Observe;
      log: Log;
    },
): Spill | undefined {
  const { SPILL_TOPIC: topic } = config;
  const { connection, log } = deps;
  if (topic === undefined || connection === undefined) return undefined;
  const onError = (error: unknown): void => log.error({ err: error }, 'the spill cannot be read; retrying');
  const pubsub = spillTopic(connection, { topic, onError });
  const spill = webhookSpiller({ keys: deps.keys, publish: pubsub.publish });
  const drain = drainSpill(deps);
  let reading: ReturnType<typeof pubsub.read> | undefined;
  /** The webhooks that this process has spilled in the current outage. */
  let spilled = NONE_WAITING;

  return {
    list: tokenList(deps.pool, { ageS: TOKEN_AGE_S, now: deps.now, log }),
    async put(webhook, about) {
      await spill(webhook, about);
      spilled = { waiting: spilled.waiting + 1, oldestAt: spilled.oldestAt ?? webhook.receivedAt };
    },
    state() {
      const received = drain.waiting();
      const { oldestAt } = spilled.oldestAt === null ? received : spilled;
      return { waiting: spilled.waiting + received.count, oldestAt };
    },
    onDatabase(isAway) {
      if (isAway) {
        log.error({}, 'Postgres is away: webhooks go to the spill');
        void reading?.stop();
        reading = undefined;
      } else {
        log.info({ spilled: spilled.waiting }, 'Postgres is back: the spill is read');
        spilled = NONE_WAITING;
        reading ??= pubsub.read(drain.receive);
      }
    },
    async stop() {
      await drain.stop();
      await reading?.stop();
    },
  };
}
