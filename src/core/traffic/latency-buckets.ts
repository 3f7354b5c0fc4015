/**
 * Up to how many milliseconds each bucket goes, as far as a placement may take; one more is for what took longer. What is
 * stored goes by their position: whoever changes them mixes up a day.
 */
export const LATENCY_BOUNDS: readonly number[] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
  .flatMap((decade) => [1, 2, 3, 5, 7].map((step) => step * decade))
  .filter((bound) => bound <= 5_000_000);

/** How many took how long: one number for each bucket. */
export type Latencies = number[];

export function countLatency(latencies: Latencies, milliseconds: number): void {
  const found = LATENCY_BOUNDS.findIndex((bound) => milliseconds <= bound);
  const nth = found === -1 ? LATENCY_BOUNDS.length : found;
  latencies[nth] = (latencies[nth] ?? 0) + 1;
}

export function noLatencies(): Latencies {
  return Array.from({ length: LATENCY_BOUNDS.length + 1 }, () => 0);
}

/** Either may lack buckets at its end. */
export function addLatencies(some: Latencies | undefined, others: Latencies | undefined): Latencies | undefined {
  if (some === undefined || others === undefined) return some ?? others;
  return noLatencies().map((_, nth) => (some[nth] ?? 0) + (others[nth] ?? 0));
}

/**
 * Estimates a quantile, as Prometheus does: the bucket is exact, and those in it are taken to lie evenly apart. So it is
 * never further off than its bucket is wide; beyond the last bound it is that bound.
 * @param share such as 0.95
 * @returns seconds, or null where nothing was counted
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
