import { minorDigits } from '../core/domain/money.ts';
import { toE164 } from '../core/domain/to-e164.ts';

/** Years that a time of an order may have. What lies outside was read in the wrong unit. */
const FIRST_MS = Date.UTC(2000);
const LAST_MS = Date.UTC(2100);
/** How far a number of JSON may be off its decimal, as 0.1 + 0.2 is. */
const FLOAT_ERROR = 1e-6;

const DAY_MS = 86_400_000;
/** Date, time and perhaps offset of ISO 8601, with its separators or without. A date alone would be midnight. */
const ISO_TIME =
  /^(\d{4})-?(\d\d)-?(\d\d)[t ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?(z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?$/i;

/** What the functions for mappers throw. `code` and `field` reach the operator; no value does, since it may be a member's. */
export class MappingError extends Error {
  override readonly name = 'MappingError';
  readonly code: MappingCode;
  /** The field that was read, if the mapper named it. */
  readonly field: string | undefined;

  constructor(code: MappingCode, field: string | undefined) {
    super(field === undefined ? SENTENCES[code] : `${field}: ${SENTENCES[code]}`);
    this.code = code;
    this.field = field;
  }
}

const SENTENCES = {
  amount_unreadable: 'is no decimal such as 12.90',
  amount_too_exact: 'has more digits than its currency',
  amount_too_large: 'is larger than any amount',
  currency_unreadable: 'is no ISO 4217 code such as EUR',
  enum_unmapped: 'has a value that the table lacks',
  location_unmapped: 'is a location that the table lacks',
  time_unreadable: 'is no time',
  zone_unknown: 'is no time zone such as Europe/Berlin',
} as const;

export type MappingCode = keyof typeof SENTENCES;

/**
 * Reads a decimal as minor units: "12.90" EUR is 1290, "1290" JPY is 1290, "1.290" KWD is 1290. Never rounds.
 * @param field names it in an error
 * @throws MappingError
 */
export function toMinorUnits(amount: string | number, currency: string, field?: string): number {
  if (!/^[A-Z]{3}$/.test(currency)) throw new MappingError('currency_unreadable', field);
  const digits = minorDigits(currency);
  const [, sign, whole = '', rest = ''] = /^([+-]?)(\d*)(?:\.(\d*))?$/.exec(asText(amount, digits)) ?? [];
  if (sign === undefined || whole + rest === '') throw new MappingError('amount_unreadable', field);
  if (/[1-9]/.test(rest.slice(digits))) throw new MappingError('amount_too_exact', field);
  const minorUnits = Number(whole + rest.slice(0, digits).padEnd(digits, '0'));
  if (!Number.isSafeInteger(minorUnits)) throw new MappingError('amount_too_large', field);
  return sign === '-' && minorUnits > 0 ? -minorUnits : minorUnits;
}

function asText(amount: string | number, digits: number): string {
  if (typeof amount === 'string') return amount.trim();
  const rounded = amount.toFixed(digits);
  return Math.abs(Number(rounded) - amount) < FLOAT_ERROR ? rounded : String(amount);
}

/**
 * Looks a value of an enum up: `mapEnum(type, { DELIVERY: 'delivery', TAKEAWAY: 'pickup' }, 'type')`. A value that the
 * table lacks is an error, since a guess may send food to the wrong place.
 * @throws MappingError
 */
export function mapEnum<const Table extends Readonly<Record<string, unknown>>>(
  value: string | number | null | undefined,
  table: Table,
  field?: string,
): Table[keyof Table] {
  return lookUp(value, table, 'enum_unmapped', field) as Table[keyof Table];
}

/**
 * Looks up which of our locations one of the platform's is.
 * @throws MappingError
 */
export function mapLocation(
  id: string | number | null | undefined,
  table: Readonly<Record<string, string>>,
  field?: string,
): string {
  return lookUp(id, table, 'location_unmapped', field);
}

/** An object's own keys alone count: a value may be called "constructor". */
function lookUp<Value>(
  key: string | number | null | undefined,
  table: Readonly<Record<string, Value>>,
  code: MappingCode,
  field: string | undefined,
): Value {
  if (key === null || key === undefined || !Object.hasOwn(table, key)) throw new MappingError(code, field);
  return table[key] as Value;
}

/**
 * Reads a telephone number as people of a country write it: "030 12345678" in DE is "+493012345678". The country of the
 * destination is looked at without this; that of a restaurant, for one, only a mapper knows.
 * @param country ISO 3166-1 alpha-2
 * @returns E.164, or the text as it was where it is no number: it is left out then
 */
export function phoneInCountry(phone: string, country: string): string {
  return toE164(phone, country) ?? phone;
}

/**
 * Reads a time without a zone, such as "2026-11-21T18:00" or "2026-11-21 18:00:00", by the clocks of a zone. One with an
 * offset is the instant that it says. Of an hour that the clocks show twice it is the first, of one that they leave out
 * the one after.
 * @param zone an IANA name, such as "Europe/Berlin"
 * @returns RFC 3339 with the offset
 * @throws MappingError
 */
export function timeInZone(time: string, zone: string, field?: string): string {
  const offsetAt = offsetsOf(zone, field);
  const [, year, month, day, hour, minute, second = '00', offset] = ISO_TIME.exec(time.trim()) ?? [];
  const wall = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const shown = Date.parse(`${wall}Z`);
  // Date.parse takes the 30th of February for the 2nd of March.
  if (Number.isNaN(shown) || toSecond(shown) !== wall) throw new MappingError('time_unreadable', field);
  const instant = offset === undefined ? instantShown(shown, offsetAt) : shown - readOffset(offset);
  const ahead = offsetAt(instant);
  const clock = toSecond(Math.abs(ahead)).slice(11, 16);
  return `${toSecond(instant + ahead)}${ahead < 0 ? '-' : '+'}${clock}`;
}

/**
 * Reads a count of seconds or milliseconds since 1970, as a number or as text.
 * @returns RFC 3339 in UTC
 * @throws MappingError also for a time before 2000 or after 2100: then the unit is the other one
 */
export function timeSinceEpoch(count: number | string, unit: 's' | 'ms', field?: string): string {
  const milliseconds = Number(count) * (unit === 's' ? 1000 : 1);
  if (count === '' || !(milliseconds >= FIRST_MS && milliseconds < LAST_MS)) {
    throw new MappingError('time_unreadable', field);
  }
  return new Date(milliseconds).toISOString();
}

/** @returns how far the zone's clocks are ahead of UTC at an instant, in milliseconds */
function offsetsOf(zone: string, field: string | undefined): (instant: number) => number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
  } catch {
    throw new MappingError('zone_unknown', field);
  }
  return (instant) => readOffset(format.format(instant));
}

/** When clocks show a time, which is given as if they were those of UTC. No zone changes its clocks twice in two days. */
function instantShown(shown: number, offsetAt: (instant: number) => number): number {
  const [before, after] = [offsetAt(shown - DAY_MS), offsetAt(shown + DAY_MS)];
  // The offset before is the larger one where clocks go back, which makes it the first of two.
  const first = shown - before;
  return offsetAt(first) === before || offsetAt(shown - after) !== after ? first : shown - after;
}

/** Reads the offset at the end of "2026-11-21T18:00+0100" or "11/21/2026, GMT+01:00" in milliseconds, 0 where there is none. */
function readOffset(text: string): number {
  const [, sign = '', hours = '0', minutes = '0'] = /([+-])(\d\d):?(\d\d)?/.exec(text) ?? [];
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/** As RFC 3339 has it, without a zone: "2026-11-21T18:00:00". */
function toSecond(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 19);
}
