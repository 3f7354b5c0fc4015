const NUMBER = String.raw`\d+ ?[a-zA-Z]?(?: ?[-/] ?\d+ ?[a-zA-Z]?)?`;
const NUMBER_LAST = new RegExp(`(?<=[^\\d ] )${NUMBER}$`);
const NUMBER_FIRST = new RegExp(`^(${NUMBER}),? ([^\\d ].*)$`);

/**
 * Joins a street and a house number as one line: "Lindenstraße 14", or "14 Main Street" with `numberFirst`. What is missing
 * or blank is left out.
 */
export function joinStreet(
  street: string | null | undefined,
  houseNumber: string | number | null | undefined,
  { numberFirst = false }: { numberFirst?: boolean } = {},
): string {
  const parts = [street?.trim(), String(houseNumber ?? '').trim()];
  return (numberFirst ? parts.toReversed() : parts).filter(Boolean).join(' ');
}

/** Splits a line into street and house number, wherever the number stands. Without one it is all street. */
export function splitStreet(line: string): { street: string; houseNumber: string } {
  const text = line.trim().replaceAll(/ {2,}/g, ' ');
  const last = NUMBER_LAST.exec(text);
  if (last !== null) return { street: text.slice(0, last.index).trimEnd(), houseNumber: last[0] };
  const [, houseNumber = '', street = text] = NUMBER_FIRST.exec(text) ?? [];
  return { street, houseNumber };
}
