/** The result of a load. */
export type Measured = {
  /** Answers by status. */
  answers: Record<string, number>;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
};

/** @param milliseconds from the first request to the last answer */
export function summarize(latencies: number[], milliseconds: number, answers: Record<string, number>): Measured {
  return {
    answers,
    perSecond: (latencies.length / milliseconds) * 1_000,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Returns the median. For an even number of values, it is the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1);
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}
