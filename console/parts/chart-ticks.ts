const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The time between two labels on the time axis, by the length of the axis. The labels fit on a phone. */
const APART = [
  { uptoMs: HOUR_MS, everyMs: 15 * MINUTE_MS },
  { uptoMs: 6 * HOUR_MS, everyMs: HOUR_MS },
  { uptoMs: Infinity, everyMs: 4 * HOUR_MS },
];

/**
 * Chooses the steps with a label: the first in each quarter of an hour, hour or four hours of the reader's time zone.
 * @param at the beginning of each step
 * @param offsetMinutes returns the offset of the reader's clock at an instant, as `getTimezoneOffset` does
 * @returns the index of each of these steps, and the round time of its label
 */
export function timeTicks(
  at: readonly string[],
  offsetMinutes: (date: Date) => number = (date) => date.getTimezoneOffset(),
): { nth: number; at: string }[] {
  const local = at.map((instant) => {
    const date = new Date(instant);
    return date.getTime() - offsetMinutes(date) * MINUTE_MS;
  });
  const [first, second = first] = local;
  const last = local.at(-1);
  if (first === undefined || second === undefined || last === undefined) return [];
  const spanMs = last - first + (second - first);
  const { everyMs } = APART.find(({ uptoMs }) => spanMs <= uptoMs) ?? { everyMs: HOUR_MS };
  return local.flatMap((ms, nth) => {
    const before = local[nth - 1] ?? ms - (second - first);
    const afterRoundMs = ms % everyMs;
    if (Math.floor(ms / everyMs) === Math.floor(before / everyMs)) return [];
    return [{ nth, at: new Date(Date.parse(at[nth] ?? '') - afterRoundMs).toISOString() }];
  });
}

/** Common durations, in seconds. */
const FINE = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200,
];
const COARSE = [0.001, 0.01, 0.1, 1, 10, 60, 600, 3_600, 7_200];
const MANY = 6;

/**
 * The labels on a logarithmic axis of durations, in seconds: the first is at or below all values, the last at or above
 * them, except for values below a millisecond or above two hours.
 */
export function durationTicks(values: readonly (number | null)[]): number[] {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return [0.01, 0.1, 1, 10];
  const least = Math.min(...known);
  const most = Math.max(...known);
  const fine = around(FINE, least, most);
  return fine.length > MANY ? around(COARSE, least, most) : fine;
}

function around(ticks: readonly number[], least: number, most: number): number[] {
  const from = Math.max(
    0,
    ticks.findLastIndex((tick) => tick <= least),
  );
  const found = ticks.findIndex((tick) => tick >= most);
  const to = found === -1 ? ticks.length - 1 : found;
  // An axis needs at least two labels.
  return from === to ? ticks.slice(Math.max(0, from - 1), from + 2) : ticks.slice(from, to + 1);
}
