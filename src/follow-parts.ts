import type { FastifyBaseLogger } from 'fastify';
import type { Config } from './config.ts';
import type { Observe } from './core/domain/observed.ts';
import type { OrderFeed } from './core/live/order-feed.ts';
import type { Now } from './core/postgres/database-clock.ts';
import type { FollowDeps } from './http/follow/follow-door.ts';
import { createFollowTokenVerifier } from './http/follow/follow-token.ts';
import { memberStreams, type MemberStreams } from './http/follow/member-streams.ts';

/**
 * Builds the members' door and its streams. Undefined while nothing says whose tokens open it: then it does not exist.
 * @param deps.most the most streams that there is room for
 */
export function followParts(
  config: Config,
  deps: { feed: OrderFeed; most: number; now: Now; observe: Observe; log: FastifyBaseLogger },
): { door: FollowDeps; streams: MemberStreams } | undefined {
  const { FOLLOW_TOKEN_JWKS_URL: jwksUrl, FOLLOW_TOKEN_KEYS: keys = [], FOLLOW_TOKEN_AUDIENCE: audience } = config;
  if (audience === undefined || !isFollowed(config)) return undefined;
  const { most, now, observe } = deps;
  if (most < config.FOLLOW_STREAMS_MAX) {
    const about = { wanted: config.FOLLOW_STREAMS_MAX, most };
    deps.log.warn(about, 'fewer streams than FOLLOW_STREAMS_MAX: this process may not open as many files');
  }
  const streams = memberStreams({ most, observe });
  const verify = createFollowTokenVerifier({ audience, ...(jwksUrl === undefined ? { keys } : { jwksUrl }) }, now);
  const { follow } = deps.feed;
  return { door: { verify, follow, streams, origins: config.MEMBER_ORIGINS, now, observe }, streams };
}

/** Whether members may follow their orders. */
export function isFollowed(config: Pick<Config, 'FOLLOW_TOKEN_JWKS_URL' | 'FOLLOW_TOKEN_KEYS'>): boolean {
  return config.FOLLOW_TOKEN_JWKS_URL !== undefined || config.FOLLOW_TOKEN_KEYS !== undefined;
}
