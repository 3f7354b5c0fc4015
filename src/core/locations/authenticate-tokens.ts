import { LRUCache } from 'lru-cache';
import { atMost } from '../domain/at-most.ts';
import { digest, mayBeToken, type Prefix } from '../domain/make-token.ts';
import { withinShare } from '../domain/within-share.ts';
import type { Now } from '../postgres/database-clock.ts';

/** The time for which a cached token may be used without reading the changes. */
const CACHE_MS = 5_000;
/** The age at which the changes are read in the background, so that webhooks of a busy location do not wait. */
const REFRESH_MS = 2_500;
/** Age at which a cached token is looked up again, because the changes do not include edits by hand in the database. */
const LOOK_UP_MS = 60_000;
/** Maximum number of cached tokens: some 50 MB with their settings. */
const CACHE_SIZE = 50_000;
const MAX_WAITING = 4_096;

/**
 * Finds a token's scope. Returns a cached scope without a promise, and undefined if the token cannot be one of ours.
 * @param source the sender, which gets only a share of the waiting look-ups
 */
export type Authenticate<Valid, Old> = (
  token: string,
  source?: () => string,
) => Valid | Promise<Valid | Old | undefined> | undefined;

/** The tokens of one table. A digest is a token's SHA-256 in base64. */
type Tokens<Valid, Old> = {
  prefix: Prefix;
  /** Finds tokens. A token that was never issued is missing, and an error is about its own token only. */
  find(digests: string[]): Promise<Map<string, Valid | Old | Error>>;
  /**
   * Finds the tokens that changed since the mark of the previous read, by default now.
   * @returns the mark of this read; `changed` is undefined if there are too many changes
   */
  readChanges(since: number | undefined): Promise<{ mark: number; changed: { sha256: string }[] | undefined }>;
  now: Now;
};

/**
 * Authenticates tokens. Only valid tokens are cached. They may be used as long as the changes are read regularly (see
 * `CACHE_MS`), so Postgres gets one small query every few seconds, however many locations are busy. Look-ups are
 * batched, one query at a time, so a flood of invented tokens never causes parallel queries. Each source may fill a
 * share of the waiting look-ups. For cached tokens there is no such limit.
 * @returns a function that resolves to undefined for a token that was never issued, and throws if the look-up fails
 */
export function authenticateTokens<Valid extends { expiresAt: number | null }, Old extends { state: unknown } = never>(
  tokens: Tokens<Valid, Old>,
): Authenticate<Valid, Old> {
  const { prefix, now } = tokens;
  const isValid = (scope: Valid | Old): scope is Valid => !('state' in scope);
  /** Times are monotonic: Postgres's clock may step back at a failover, and revoked tokens would stay valid longer. */
  const known = new LRUCache<string, { scope: Valid; readAt: number; cachedAt: number }>(atMost(CACHE_SIZE));
  const waiting = new Map<string, PromiseWithResolvers<Valid | Old | undefined>>();
  /** The number of waiting look-ups by source, except those of cached tokens. */
  const waitingOf = new Map<string, number>();
  let isLookingUp = false;
  /** The last read of the changes: `mark` by Postgres's clock, and when it started by the monotonic clock. */
  let lastRefresh: { mark: number; readAt: number } | undefined;
  let isRefreshing = false;

  const lookUp = async (): Promise<void> => {
    isLookingUp = true;
    while (waiting.size > 0) {
      const batch = new Map(waiting);
      waiting.clear();
      waitingOf.clear();
      try {
        const readAt = performance.now();
        const found = await tokens.find([...batch.keys()]);
        for (const [sha256, answer] of batch) {
          const scope = found.get(sha256);
          known.delete(sha256);
          if (scope instanceof Error) {
            answer.reject(scope);
            continue;
          }
          if (scope !== undefined && isValid(scope)) known.set(sha256, { scope, readAt, cachedAt: performance.now() });
          answer.resolve(scope);
        }
      } catch (error) {
        for (const answer of batch.values()) answer.reject(error);
      }
    }
    isLookingUp = false;
  };

  const refresh = async (): Promise<void> => {
    if (isRefreshing) return;
    isRefreshing = true;
    try {
      const readAt = performance.now();
      const { mark, changed } = await tokens.readChanges(lastRefresh?.mark);
      if (changed === undefined) known.clear();
      else for (const { sha256 } of changed) known.delete(sha256);
      lastRefresh = { mark, readAt };
    } finally {
      isRefreshing = false;
    }
  };

  const lookUpToken = (sha256: string, source?: () => string): Promise<Valid | Old | undefined> => {
    let answer = waiting.get(sha256);
    if (answer === undefined) {
      if (source !== undefined) {
        const own = (waitingOf.get(source()) ?? 0) + 1;
        if (!withinShare(own, waiting.size + 1, MAX_WAITING)) {
          return Promise.reject(new Error('too many tokens wait to be authenticated'));
        }
        waitingOf.set(source(), own);
      }
      answer = Promise.withResolvers<Valid | Old | undefined>();
      waiting.set(sha256, answer);
      if (!isLookingUp) void lookUp();
    }
    return answer.promise;
  };

  return (token, source = () => '') => {
    const sha256 = digest(token);
    const cached = known.get(sha256);
    if (cached === undefined) return mayBeToken(prefix, token) ? lookUpToken(sha256, source) : undefined;
    const { scope, readAt, cachedAt } = cached;
    const at = performance.now();
    // A refresh that began before the token was cached does not count: it may have removed the token before that.
    const goodAt = lastRefresh !== undefined && lastRefresh.readAt > cachedAt ? lastRefresh.readAt : readAt;
    const isExpired = scope.expiresAt !== null && scope.expiresAt <= now().getTime();
    if (isExpired || at - goodAt >= CACHE_MS || at - readAt >= LOOK_UP_MS) return lookUpToken(sha256);
    // If one of these two fails, the next webhook tries again.
    if (at - goodAt > REFRESH_MS) refresh().catch(() => {});
    if (LOOK_UP_MS - (at - readAt) < CACHE_MS) lookUpToken(sha256).catch(() => {});
    return scope;
  };
}
