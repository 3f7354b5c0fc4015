import type { FastifyInstance } from 'fastify';
import type { Config } from '../config.ts';
import {
  ATTENTION_ROW,
  attentionEvent,
  recordAttention,
  type AttentionRow,
} from '../../core/orders/attention-events.ts';
import { publishRows } from '../../core/postgres/publish-rows.ts';
import { attentionTopic } from '../pubsub/attention-topic.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'pubsub'>;

export type Attention = ReturnType<typeof attentionModule>;

/** Tells the operators' own chat or pager what needs a person. */
export function attentionModule(app: App, config: Config) {
  const { pool } = app.database;
  const { ATTENTION_TOPIC: topic, CONSOLE_URL: consoleUrl } = config;
  if (topic === undefined) return undefined;
  const tell = attentionTopic(app.pubsub, topic);
  const publisher = publishRows<AttentionRow>({
    pool,
    table: 'attention_items',
    key: 'item_key',
    row: ATTENTION_ROW,
    publish: (row) => tell(attentionEvent(row, consoleUrl)),
    log: app.log,
  });
  return {
    part: { name: 'attention', start: publisher.start, stop: publisher.stop },
    async record() {
      if (await recordAttention(pool)) publisher.wake();
    },
  };
}
