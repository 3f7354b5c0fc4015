import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { atMost } from '../core/domain/at-most.ts';
import type { AuthEndpoint, Observe } from '../core/domain/observed.ts';
import { digest } from '../core/domain/make-token.ts';
import { sourceOf } from './request.ts';
import { takeTurns } from './take-turns.ts';

/** One source may fail this often at once, and `PER_SECOND` more times per second. */
export const BURST = 10;
export const PER_SECOND = 2;
/** Maximum number of buckets. Five seconds after its last failed authentication a bucket is full and can be deleted. */
export const MOST_SOURCES = 1_000;

/** A credential that was valid is checked without throttling for this long. At most `MOST_RIGHT` are remembered. */
const RIGHT_MS = 15 * 60_000;
const MOST_RIGHT = 10_000;

/** Our tokens have 256 random bits, so nobody guesses one. OPERATOR_TOKEN and the codes of others may have fewer. */
const OURS = /^ex[os]_[\w-]{43}/;
/** The doors where all credentials are ours. */
const OURS_ONLY: readonly AuthEndpoint[] = ['session', 'connect_link', 'answer_link'];
/** As many of them are looked up at once by one door, so that a flood of invented ones leaves the pool to others. */
const LOOK_UPS = 4;

/** The credential was rejected unchecked, because too many authentications from its source failed. */
export class TooManyFailures extends Error {
  override readonly name = 'TooManyFailures';
  readonly retryAfterS = 1;
}

/**
 * Checks the credentials of a request.
 * @param shown all credentials of the request; if it is empty, the result is undefined
 * @returns the result of `judge`: undefined if they are wrong
 * @throws TooManyFailures
 */
export type JudgeSlowly = <Judged>(
  request: FastifyRequest,
  endpoint: AuthEndpoint,
  shown: readonly string[],
  judge: () => Promise<Judged | undefined>,
) => Promise<Judged | undefined>;

type Bucket = { left: number; at: number; judging: number; settled: PromiseWithResolvers<void> };

/**
 * Throttles failed authentications at each door separately, because behind a proxy that is not trusted all senders are
 * one source: wrong links must not keep operators out.
 */
export function throttleFailures(about: { observe: Observe; now?: () => number }): JudgeSlowly {
  const doors = new Map<AuthEndpoint, JudgeSlowly>();
  return (request, endpoint, shown, judge) => {
    // guard: bucket-per-door
    const door = doors.get(endpoint) ?? throttleDoor(about);
    doors.set(endpoint, door);
    return door(request, endpoint, shown, judge);
  };
}

/**
 * Throttles failed authentications with one token bucket per source. Each check first takes a token from the bucket,
 * and a valid credential gives the token back, so parallel requests cannot avoid the limit. If the bucket is empty, a
 * request first waits for the running checks, some milliseconds. A credential recently valid from the same source is
 * always checked, because many people and a Prometheus server may share one address. Tokens, sessions and links of ours
 * are always checked too, in turns of the sources.
 *
 * If all `MOST_SOURCES` buckets are in use, all further sources share one bucket. New sources are slow then, but failed
 * authentications cannot overload Postgres.
 * @param now milliseconds
 */
function throttleDoor(about: { observe: Observe; now?: () => number }): JudgeSlowly {
  const { observe, now = () => performance.now() } = about;
  /** Recently valid credentials, by hash and source. The same credential is throttled if another source sends it. */
  const right = new LRUCache<string, true>({ ...atMost(MOST_RIGHT), ttl: RIGHT_MS, ttlResolution: 0, perf: { now } });
  const full = (): Bucket => ({ left: BURST, at: now(), judging: 0, settled: Promise.withResolvers() });
  /** Sorted by the last failed authentication, oldest first, so the first bucket is full before all others. */
  const buckets = new Map<string, Bucket>();
  const others = full();
  const turn = takeTurns(LOOK_UPS);

  const refill = (bucket: Bucket): Bucket => {
    const at = now();
    bucket.left = Math.min(BURST, bucket.left + ((at - bucket.at) / 1_000) * PER_SECOND);
    bucket.at = at;
    return bucket;
  };
  const bucketOf = (source: string): Bucket => {
    const known = buckets.get(source);
    if (known !== undefined) return known;
    if (buckets.size >= MOST_SOURCES) {
      const [[first, bucket] = ['', others] as const] = buckets;
      if (bucket.judging > 0 || refill(bucket).left < BURST) return others;
      buckets.delete(first);
    }
    const bucket = full();
    buckets.set(source, bucket);
    return bucket;
  };

  return async (request, endpoint, shown, judge) => {
    if (shown.length === 0) return undefined;
    const source = sourceOf(request);
    const refused = (): void => observe({ what: 'failed authentication', endpoint, outcome: 'refused', source });
    const key = shown.length === 1 ? `${digest(shown[0] ?? '')} ${source}` : undefined;
    const note = (isRight: boolean): void => {
      if (key === undefined) return;
      if (isRight) right.set(key, true);
      else right.delete(key);
    };
    const isKnown = key !== undefined && right.has(key);
    // guard: not-guessable
    if (isKnown || OURS_ONLY.includes(endpoint) || shown.every((each) => OURS.test(each))) {
      const end = isKnown ? undefined : await turn(source);
      const judged = await judge().finally(end);
      note(judged !== undefined);
      if (judged === undefined) refused();
      return judged;
    }
    const bucket = bucketOf(source);
    while (refill(bucket).left < 1 && bucket.judging > 0) await bucket.settled.promise;
    if (bucket.left < 1) {
      observe({ what: 'failed authentication', endpoint, outcome: 'slowed', source });
      throw new TooManyFailures('Too many failed authentications came from your address. Try again in a second.');
    }
    bucket.left -= 1;
    bucket.judging += 1;
    let isWrong = false;
    try {
      const judged = await judge();
      isWrong = judged === undefined;
      note(!isWrong);
      return judged;
    } finally {
      bucket.judging -= 1;
      if (!isWrong) bucket.left += 1;
      else {
        if (buckets.get(source) === bucket) {
          buckets.delete(source);
          buckets.set(source, bucket);
        }
        refused();
      }
      bucket.settled.resolve();
      bucket.settled = Promise.withResolvers();
    }
  };
}
