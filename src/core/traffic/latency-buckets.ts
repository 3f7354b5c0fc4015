/**
 * Upper bounds of the buckets in milliseconds, up to the longest placement; one more bucket holds the rest. Stored
 * values depend on the positions: a change would mix up a day.
 */
export const LATENCY_BOUNDS: readonly number[] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
  .flatMap((decade) => [1, 2, 3, 5, 7].map((step) => step * decade))
  .filter((bound) => bound <= 5_000_000);

/** The number of values in each bucket. */
export type Latencies = number[];

export function countLatency(latencies: Latencies, milliseconds: number): void {
  const found = LATENCY_BOUNDS.findIndex((bound) => milliseconds <= bound);
  const nth = found === -1 ? LATENCY_BOUNDS.length : found;
  latencies[nth] = (latencies[nth] ?? 0) + 1;
}

export function noLatencies(): Latencies {
  return Array.from({ length: LATENCY_BOUNDS.length + 1 }, () => 0);
}

/** Adds two lists. Either may lack buckets at its end. */
export function addLatencies(some: Latencies | undefined, others: Latencies | undefined): Latencies | undefined {
  if (some === undefined || others === undefined) return some ?? others;
  return noLatencies().map((_, nth) => (some[nth] ?? 0) + (others[nth] ?? 0));
}

/**
 * Estimates a quantile as Prometheus does: values are taken as evenly spread within their bucket. So the error is at
 * most the bucket's width; beyond the last bound the result is that bound.
 * @param share such as 0.95
 * @returns seconds, or null if nothing was counted
 */
export function quantile(latencies: Latencies, share: number): number | null {
  const total = latencies.reduce((sum, count) => sum + count, 0);
  const wanted = total * share;
  let below = 0;
  for (const [nth, count] of latencies.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = LATENCY_BOUNDS[nth - 1] ?? 0;
      const to = LATENCY_BOUNDS[nth] ?? from;
      const milliseconds = from + ((wanted - below) / count) * (to - from);
      return Number((milliseconds / 1_000).toPrecision(3));
    }
    below += count;
  }
  return null;
}
