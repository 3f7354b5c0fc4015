/**
 * The rows to show after a list was loaded again. Rows on screen are updated in place. New rows would move them, so they
 * wait while somebody reads.
 * @returns `waiting`: the number of new rows that are not shown
 */
export function holdRows<Row>(
  shown: readonly Row[],
  loaded: readonly Row[],
  keyOf: (row: Row) => string,
  isRead: boolean,
): { rows: readonly Row[]; waiting: number } {
  const byKey = new Map(loaded.map((row) => [keyOf(row), row]));
  const waiting = loaded.length - shown.filter((row) => byKey.has(keyOf(row))).length;
  if (!isRead || waiting === 0) return { rows: loaded, waiting: 0 };
  return { rows: shown.map((row) => byKey.get(keyOf(row)) ?? row), waiting };
}
