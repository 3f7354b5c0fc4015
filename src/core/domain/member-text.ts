/** Matches one word, such as a name or a code. Only such a part of another system's error may be logged. */
const WORD = /^[\w.$-]{1,100}$/;

/** @returns the value if it is one word; undefined for any other value, because it may quote a member */
export function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && WORD.test(value) ? value : undefined;
}

/** Joins the parts of a name. Missing and blank parts are left out. */
export function joinName(...parts: (string | null | undefined)[]): string {
  return parts.flatMap((part) => part?.trim() || []).join(' ');
}

/** Splits a name before its last word. A single word becomes the first name. */
export function splitName(name: string): { first: string; last: string } {
  const words = name.trim().split(/\s+/);
  const last = words.length > 1 ? (words.pop() ?? '') : '';
  return { first: words.join(' '), last };
}

/**
 * Countries in which the house number comes before the street, as ISO 3166-1 alpha-2. There, a number at the end
 * belongs to a flat or to the name: "12 Main Street Apt 4", "12 rue du 8 Mai 1945".
 */
const NUMBER_FIRST = new Set('AE AU CA FR GB HK IE IN LU MA MC MT MY NZ PH SG TH US ZA'.split(' '));

/** As in `14`, `14 a`, `12bis`, `14-16`, `5/12`, `1-2-3` and `12-A2`. */
const NUMBER = String.raw`\d+(?: ?(?:bis|ter|quater|[a-zA-Z]))?(?: ?[-/] ?(?:\d+(?: ?[a-zA-Z])?|[a-zA-Z]\d+))*`;
/** `s/n` (sin número, sem número) says that the house has none. */
const AT_END = new RegExp(String.raw`(?<=[^\d ] )(?:${NUMBER}|s/n)$`, 'i');
/** The letter in "500 E Main Street" is not part of the number. "12 5th Avenue" matches, "12 34 Street" does not. */
const AT_BEGINNING =
  /^(\d+(?: ?(?:bis|ter|quater)|[a-zA-Z])?(?: ?[-/] ?(?:\d+[a-zA-Z]?|[a-zA-Z]\d+))*),? (\d*[^\d ].*)$/i;

/**
 * Joins a street and a house number as one line: "Lindenstraße 14", or "14 Main Street" with `numberFirst`. Missing and
 * blank parts are left out.
 */
export function joinStreet(
  street: string | null | undefined,
  houseNumber: string | number | null | undefined,
  { numberFirst = false }: { numberFirst?: boolean } = {},
): string {
  const parts = [street?.trim(), String(houseNumber ?? '').trim()];
  return (numberFirst ? parts.toReversed() : parts).filter(Boolean).join(' ');
}

/**
 * Splits a line into street and house number. Without a number the whole line is the street.
 * @param country ISO 3166-1 alpha-2. In a `NUMBER_FIRST` country a number at the end is not a house number
 */
export function splitStreet(line: string, country = ''): { street: string; houseNumber: string } {
  const text = line.trim().replaceAll(/ {2,}/g, ' ');
  const last = NUMBER_FIRST.has(country.toUpperCase()) ? null : AT_END.exec(text);
  if (last !== null) return { street: text.slice(0, last.index).replace(/,? $/, ''), houseNumber: last[0] };
  const [, houseNumber = '', street = text] = AT_BEGINNING.exec(text) ?? [];
  return { street, houseNumber };
}
