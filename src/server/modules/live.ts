import type { FastifyInstance } from 'fastify';
import { hasOperators, type Config } from '../../config/config.ts';
import { orderFeed, type OrderFeed } from '../../core/live/order-feed.ts';
import { publishLive, type Publish } from '../../core/live/publish-live.ts';
import { recordFollowed } from '../../core/live/record-followed.ts';
import { createFollowTokenVerifier } from '../../identity/follow-token.ts';
import { memberStreams } from '../../http/follow/member-streams.ts';
import { eventTopic, sourceOfTopic } from '../../pubsub/event-topic.ts';
import { statusEvent, type SendEvent } from '../../core/domain/cloud-event.ts';
import { traceparent } from '../../core/domain/trace-id.ts';
import { eventWebhook } from '../../core/egress/post-signed.ts';
import { statusEndpoint } from '../../core/live/status-endpoint.ts';
import { joinLoops, oneAfterTheOther } from '../../core/postgres/loops.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'providers' | 'pubsub'>;

/** With the origin of PUBLIC_URL, it names an installation that has no topic. */
const LIVE_PATH = '/live';

export type Live = Awaited<ReturnType<typeof liveModule>>;

/** Publishes committed changes to the platform, members and the board. @param most maximum streams of members */
export async function liveModule(app: App, config: Config, most: number) {
  const { log } = app;
  const { pool } = app.database;
  const relay = relayOf(app, config);
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

/** Publishes the outbox by each way that is configured: the topic, the webhook, or both. */
function relayOf(app: App, config: Config) {
  const { log, pubsub, observability } = app;
  const { pool } = app.database;
  const { STATUS_WEBHOOK_URL: url, STATUS_TOPIC: topic } = config;
  const webhook = webhookOf(app, config);
  const isOnly = webhook === undefined || pubsub === undefined;
  const tracedShare = config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined ? undefined : config.OTEL_TRACES_SAMPLER_ARG;
  const by = (send: SendEvent): Publish => {
    return async (message, spanId) => {
      const parent = tracedShare === undefined ? undefined : traceparent(message.serviceOrderId, spanId, tracedShare);
      return send(statusEvent(message, parent));
    };
  };
  const common = { pool, isOnly, inTurn: oneAfterTheOther(), log, observe: observability.observe };
  return joinLoops([
    ...(pubsub === undefined ? [] : [publishLive({ ...common, way: 'topic', publish: by(eventTopic(pubsub, topic)) })]),
    ...(webhook === undefined || url === undefined
      ? []
      : [
          publishLive({
            ...common,
            way: 'webhook',
            publish: by(webhook),
            endpoint: statusEndpoint({ pool, url, log }),
          }),
        ]),
  ]);
}

/** Sends events to STATUS_WEBHOOK_URL. Undefined if it is not set. */
export function webhookOf({ database, providers }: Pick<App, 'database' | 'providers'>, config: Config) {
  const { STATUS_WEBHOOK_URL: url, STATUS_WEBHOOK_SECRET: secrets } = config;
  if (url === undefined || secrets === undefined) return undefined;
  return eventWebhook(
    { url, secrets, send: providers.posFetch, now: database.clock.now },
    { source: sourceOf(config) },
  );
}

/** The publisher of events by webhook: the status topic, or if there is none, an address below PUBLIC_URL. */
export function sourceOf({ GOOGLE_CLOUD_PROJECT: project, STATUS_TOPIC, PUBLIC_URL = '' }: Config): string {
  return project === undefined ? `${new URL(PUBLIC_URL).origin}${LIVE_PATH}` : sourceOfTopic(project, STATUS_TOPIC);
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
