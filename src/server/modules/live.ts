import type { FastifyInstance } from 'fastify';
import { hasOperators, type Config } from '../../config/config.ts';
import { orderFeed, type OrderFeed } from '../../core/live/order-feed.ts';
import { publishLive } from '../../core/live/publish-live.ts';
import { recordFollowed } from '../../core/live/record-followed.ts';
import { createFollowTokenVerifier } from '../../identity/follow-token.ts';
import { memberStreams } from '../../http/follow/member-streams.ts';
import { statusTopic } from '../../pubsub/status-topic.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'pubsub'>;

export type Live = Awaited<ReturnType<typeof liveModule>>;

/** Publishes committed changes to the topic, members and the board. @param most maximum streams of members */
export async function liveModule(app: App, config: Config, most: number) {
  const { log, pubsub, observability } = app;
  const { pool } = app.database;
  const topic = statusTopic(pubsub, {
    name: config.STATUS_TOPIC,
    tracedShare: config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined ? undefined : config.OTEL_TRACES_SAMPLER_ARG,
  });
  const relay = publishLive({ pool, publish: topic.publish, log, observe: observability.observe });
  const feed = orderFeed({ pool, log });
  // The board is loaded only if operators have an endpoint.
  const board = hasOperators(config)
    ? (await import('../../core/orders/board-feed.ts')).boardFeed({ pool, log })
    : undefined;
  const members = membersOf(app, config, { feed, most });
  const write = recordFollowed(pool, () => members?.streams.followed() ?? new Set());
  return {
    /** Call this after a commit: it wakes the relay, the followers of orders and the watchers of the board. */
    notify() {
      relay.wake();
      feed.wake();
      board?.wake();
    },
    feed,
    board,
    members,
    write,
    relay: { name: 'relay', loops: { relay }, stop: relay.stop },
    /** Removes this process's record of followed orders. If this fails, the record expires. */
    followed: { name: 'followed orders', stop: () => members && write().catch(() => {}) },
    /** The loops that poll Postgres for changes while somebody follows an order or the board. */
    feeds: { name: 'feeds', stop: () => Promise.all([board?.stop(), feed.stop()]) },
  };
}

/** The members' endpoint and its streams. Undefined if no keys are configured: then there is no endpoint. */
function membersOf(app: App, config: Config, { feed, most }: { feed: OrderFeed; most: number }) {
  const { FOLLOW_TOKEN_KEYS: source, FOLLOW_TOKEN_AUDIENCE: audience } = config;
  if (audience === undefined || source === undefined) return undefined;
  if (most < config.FOLLOW_STREAMS_MAX) {
    const about = { wanted: config.FOLLOW_STREAMS_MAX, most };
    app.log.warn(about, 'fewer streams than FOLLOW_STREAMS_MAX: raise the limit of open files of this process');
  }
  const { observe } = app.observability;
  const { clock } = app.database;
  const streams = memberStreams({ most, observe });
  const verify = createFollowTokenVerifier({ audience, ...source }, clock.now);
  const endpoint = { verify, follow: feed.follow, streams, origins: config.MEMBER_ORIGINS, now: clock.now, observe };
  return { streams, endpoint };
}

export function isFollowed(config: Pick<Config, 'FOLLOW_TOKEN_KEYS'>): boolean {
  return config.FOLLOW_TOKEN_KEYS !== undefined;
}
