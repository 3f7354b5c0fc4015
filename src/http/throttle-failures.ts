import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { AuthEndpoint, Observe } from '../core/domain/observed.ts';
import { digest } from '../core/domain/make-token.ts';
import { sourceOf } from './request.ts';

/** Wrong credentials of one source that are judged without a pause, and how many more a second. */
export const BURST = 10;
export const PER_SECOND = 2;
/** Sources that have a bucket. One is full again, and needs none, five seconds after its last wrong one. */
export const MOST_SOURCES = 1_000;

/** Time for which a credential that was right from a source is judged there at once, and how many such there are. */
const RIGHT_MS = 15 * 60_000;
const MOST_RIGHT = 10_000;

/** Nobody looked at the credential: too many wrong ones came from there. */
export class TooManyFailures extends Error {
  override readonly name = 'TooManyFailures';
  readonly retryAfterS = 1;
}

/**
 * Judges what a request shows.
 * @param shown all of it; where there is nothing, nothing is judged
 * @returns what `judge` does: undefined if it is wrong
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
 * Makes guessing slow: a source that shows wrong credentials has further ones judged at `PER_SECOND`. Each is taken off
 * before it is judged, and given back if it was right, so that many at once are no way around; what waits for those waits
 * for milliseconds. What was right from there lately is always judged: a source may be many people, and a Prometheus.
 *
 * A bucket that is not full is never forgotten. Where so many sources guess that there is no room for one more, all
 * further ones share a bucket: then new ones are slow, rather than Postgres busy with guesses.
 *
 * @param now milliseconds
 */
export function throttleFailures(about: { observe: Observe; now?: () => number }): JudgeSlowly {
  const { observe, now = () => performance.now() } = about;
  /** Credentials that were right, by their hash and their source. From elsewhere one would be a guess like any other. */
  const right = new LRUCache<string, true>({ max: MOST_RIGHT, ttl: RIGHT_MS, ttlResolution: 0, perf: { now } });
  const full = (): Bucket => ({ left: BURST, at: now(), judging: 0, settled: Promise.withResolvers() });
  /** In the order of their last wrong one, so that the first is full first. */
  const buckets = new Map<string, Bucket>();
  const others = full();

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
    if (key !== undefined && right.has(key)) {
      const judged = await judge();
      note(judged !== undefined);
      if (judged === undefined) refused();
      return judged;
    }
    const bucket = bucketOf(source);
    const cost = Math.min(BURST, shown.length);
    while (refill(bucket).left < cost && bucket.judging > 0) await bucket.settled.promise;
    if (bucket.left < cost) {
      observe({ what: 'failed authentication', endpoint, outcome: 'slowed', source });
      throw new TooManyFailures('Too many failed authentications came from your address. Try again in a second.');
    }
    bucket.left -= cost;
    bucket.judging += 1;
    let isWrong = false;
    try {
      const judged = await judge();
      isWrong = judged === undefined;
      note(!isWrong);
      return judged;
    } finally {
      bucket.judging -= 1;
      if (!isWrong) bucket.left += cost;
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
