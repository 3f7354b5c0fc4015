import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import {
  ATTENTION_ROW,
  attentionEvent,
  recordAttention,
  type AttentionRow,
} from '../../core/orders/attention-events.ts';
import { vendorName } from '../../core/locations/describe-settings.ts';
import { publishRows } from '../../core/postgres/publish-rows.ts';
import { attentionCloudEvent, type SendEvent } from '../../core/domain/cloud-event.ts';
import { sourceOf } from './live.ts';
import { eventTopic } from '../../pubsub/event-topic.ts';
import { eventWebhook } from '../../core/egress/post-signed.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'providers' | 'pubsub'>;

const STOP_MS = 1_000;

export type Attention = ReturnType<typeof attentionModule>;

/** Tells the operators' own chat or pager what needs a person. */
export function attentionModule(app: App, config: Config) {
  const { pool } = app.database;
  const { CONSOLE_URL: consoleUrl } = config;
  const nameOf = (integration: string): string => vendorName(app.providers.registry, integration);
  const tell = tellerOf(app, config);
  if (tell === undefined) return undefined;
  const publisher = publishRows({
    pool,
    table: 'attention_items',
    key: 'item_key',
    row: ATTENTION_ROW,
    publish: (row: AttentionRow) => tell(attentionCloudEvent(attentionEvent(row, consoleUrl, nameOf))),
    work: 'publishing of attention',
    observe: app.observability.observe,
    log: app.log,
  });
  return {
    part: {
      name: 'attention',
      loops: { attention: publisher },
      // A slow pager must not delay the other parts. Another process tells it again, with the same id.
      stop: () => Promise.race([publisher.stop(), sleep(STOP_MS, undefined, { ref: false })]),
    },
    async record() {
      if (await recordAttention(pool)) publisher.wake();
    },
  };
}

/** @returns undefined if nobody is to be told */
function tellerOf({ database, providers, pubsub }: App, config: Config): SendEvent | undefined {
  const { ATTENTION_TOPIC: topic, ATTENTION_WEBHOOK_URL: url, NOTIFY_WEBHOOK_SECRET: secrets } = config;
  if (topic !== undefined && pubsub !== undefined) return eventTopic(pubsub, topic);
  if (url === undefined || secrets === undefined) return undefined;
  const to = { url, secrets, send: providers.posFetch, now: database.clock.now };
  // Chats and pagers read JSON of any kind, but rarely this media type of CloudEvents.
  return eventWebhook(to, { source: sourceOf(config), type: 'application/json' });
}
