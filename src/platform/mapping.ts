import { minorDigits } from '../core/domain/money.ts';
import type { Maybe, Skipped } from '../core/domain/order-module.ts';
import { toE164 } from '../core/domain/to-e164.ts';

/**
 * Ends an order that is not for us, such as one at a table: `return skip('dine_in')`. It gets no ticket, its member is not
 * notified, and nothing is reported as failed. A later signal reads it again.
 * @param reason one word, which operators see. Any other text is not shown, because it may be member data
 */
export function skip(reason: string): Skipped {
  return { skipped: reason };
}

/** Range of plausible order times. A time outside it means that seconds were read as milliseconds, or the reverse. */
const FIRST_MS = Date.UTC(2000);
const LAST_MS = Date.UTC(2100);
/** Maximum difference between a JSON number and the decimal that it stands for: 0.1 + 0.2 is 0.30000000000000004. */
const FLOAT_ERROR = 1e-6;

const DAY_MS = 86_400_000;
/** An ISO 8601 date and time. Separators and offset are optional. A date alone is refused: it would mean midnight. */
const ISO_TIME =
  /^(\d{4})-?(\d\d)-?(\d\d)[t ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?(z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?$/i;

const DECIMAL = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*$/;

/** The error of this file's functions. Operators see `code` and `field`, but not the value: it may be member data. */
export class MappingError extends Error {
  override readonly name = 'MappingError';
  readonly code: MappingCode;
  readonly field: string | undefined;

  constructor(code: MappingCode, field: string | undefined) {
    super(field === undefined ? SENTENCES[code] : `${field}: ${SENTENCES[code]}`);
    this.code = code;
    this.field = field;
  }
}

const SENTENCES = {
  amount_unreadable: 'is not a decimal such as 12.90',
  amount_too_exact: 'has more decimals than its currency: see roundTogether',
  amount_too_large: 'is larger than any amount',
  amount_not_whole: 'is not a whole number of minor units such as 1290',
  country_unreadable: 'is not an ISO 3166-1 code such as DE',
  currency_unreadable: 'the currency is not an ISO 4217 code such as EUR',
  enum_unmapped: 'has a value that is not in the table',
  location_unmapped: 'is a location that is not in the table',
  phone_unreadable: 'is not a text',
  time_unreadable: 'is not a time',
  value_missing: 'is missing',
  zone_unknown: 'is not a time zone such as Europe/Berlin',
} as const;

export type MappingCode = keyof typeof SENTENCES;

/**
 * Reads a decimal as minor units: "12.90" EUR is 1290, "1290" JPY is 1290, "1.290" KWD is 1290. Never rounds a text. Of
 * a number it drops only the error of binary fractions: 0.1 + 0.2 EUR is 30, and 12.905 EUR is refused.
 * @param field the field's name, for the error about the amount
 * @throws MappingError
 */
export function toMinorUnits(amount: Maybe<string | number>, currency: Maybe<string>, field?: string): number {
  const given = ofKind(amount, ['string', 'number'], 'amount_unreadable', field);
  const digits = digitsOf(currency);
  const [, sign, whole = '', rest = ''] = /^([+-]?)(\d*)(?:\.(\d*))?$/.exec(asText(given, digits)) ?? [];
  if (sign === undefined || whole + rest === '') throw new MappingError('amount_unreadable', field);
  if (/[1-9]/.test(rest.slice(digits))) throw new MappingError('amount_too_exact', field);
  const minorUnits = Number(whole + rest.slice(0, digits).padEnd(digits, '0'));
  if (!Number.isSafeInteger(minorUnits)) throw new MappingError('amount_too_large', field);
  return sign === '-' && minorUnits > 0 ? -minorUnits : minorUnits;
}

/**
 * Reads an amount that is already in minor units, such as cents.
 * @param field the field's name, for the error
 * @throws MappingError, also if the amount is missing
 */
export function minorUnits(amount: Maybe<string | number>, field?: string): number {
  const given = ofKind(amount, ['string', 'number'], 'amount_not_whole', field);
  const units = typeof given === 'string' && /^\s*[+-]?\d+\s*$/.test(given) ? Number(given) : given;
  if (!Number.isSafeInteger(units)) throw new MappingError('amount_not_whole', field);
  return Number(units);
}

/**
 * Reads an amount of a platform that keeps all currencies in hundredths: 1290 EUR is 1290, 99000 JPY is 990, and 330 KWD
 * is 3300.
 * @param field the field's name, for the error about the amount
 * @throws MappingError, also if the amount has a fraction that the currency lacks, such as 7920 JPY: see `roundTogether`
 */
export function fromHundredths(amount: Maybe<string | number>, currency: Maybe<string>, field?: string): number {
  const hundredths = String(Math.abs(minorUnits(amount, field))).padStart(3, '0');
  const units = toMinorUnits(`${hundredths.slice(0, -2)}.${hundredths.slice(-2)}`, currency, field);
  return units > 0 && Number(amount) < 0 ? -units : units;
}

/**
 * Rounds decimals to minor units such that they still add up: each by less than one unit, and whole ones not at all. It
 * is for platforms whose taxes have fractions: taxes of 79.2 and 33.6 JPY are 79 and 34, and their sum of 112.8 is 113.
 * @returns `amounts` in the given order; `sum`, which they add up to; `rounded`, what was added to the sum, in minor
 *   units: 0.2. It is negative if something was taken away
 * @throws MappingError
 */
export function roundTogether(
  amounts: readonly Maybe<string | number>[],
  currency: Maybe<string>,
  field?: string,
): { amounts: number[]; sum: number; rounded: number } {
  const scale = 10 ** digitsOf(currency);
  let exact = 0;
  let sum = 0;
  const rounded = amounts.map((amount) => {
    const given = ofKind(amount, ['string', 'number'], 'amount_unreadable', field);
    if (!DECIMAL.test(typeof given === 'string' ? given : given.toFixed(6))) {
      throw new MappingError('amount_unreadable', field);
    }
    const before = sum;
    exact = withoutFloatError(exact + Number(given) * scale);
    sum = Math.round(exact) + 0;
    if (!Number.isSafeInteger(sum)) throw new MappingError('amount_too_large', field);
    return sum - before;
  });
  return { amounts: rounded, sum, rounded: withoutFloatError(sum - exact) };
}

const withoutFloatError = (amount: number): number => Number(amount.toFixed(6));

function digitsOf(currency: Maybe<string>): number {
  if (typeof currency === 'string' && /^[A-Z]{3}$/.test(currency)) return minorDigits(currency);
  throw new MappingError('currency_unreadable', 'currency');
}

function asText(amount: string | number, digits: number): string {
  if (typeof amount === 'string') return amount.trim();
  const rounded = amount.toFixed(digits);
  return Math.abs(Number(rounded) - amount) < FLOAT_ERROR ? rounded : String(amount);
}

/**
 * Maps a value of an enum: `mapEnum(type, { DELIVERY: 'delivery', TAKEAWAY: 'pickup' }, 'type')`.
 * @throws MappingError if the value is not in the table, because a default might send food to the wrong place
 */
export function mapEnum<const Table extends Readonly<Record<string, unknown>>>(
  value: Maybe<string | number>,
  table: Table,
  field?: string,
): Table[keyof Table] {
  return lookUp(value, table, 'enum_unmapped', field) as Table[keyof Table];
}

/**
 * Maps the platform's location id to ours.
 * @throws MappingError
 */
export function mapLocation(
  id: Maybe<string | number>,
  table: Readonly<Record<string, string>>,
  field?: string,
): string {
  return lookUp(id, table, 'location_unmapped', field);
}

/** Reads only the table's own keys. A plain look-up of the key "constructor" would find a function. */
function lookUp<Value>(
  key: Maybe<string | number>,
  table: Readonly<Record<string, Value>>,
  code: MappingCode,
  field: string | undefined,
): Value {
  const given = ofKind(key, ['string', 'number'], code, field);
  if (!Object.hasOwn(table, given)) throw new MappingError(code, field);
  return table[given] as Value;
}

/** A mapper's types may not fit the platform's answer, so the kind is checked. */
function ofKind<Value>(value: Maybe<Value>, kinds: string[], code: MappingCode, field: string | undefined): Value {
  if (value === null || value === undefined) throw new MappingError('value_missing', field);
  if (!kinds.includes(typeof value)) throw new MappingError(code, field);
  return value;
}

/**
 * Reads a telephone number in a country's national format: "030 12345678" in DE is "+493012345678". A mapper needs it
 * only for other countries: `readCanonicalOrder` itself tries the countries of the destination and the location.
 * @param country ISO 3166-1 alpha-2
 * @returns the number in E.164. A text that is not a number is returned unchanged, and the order then has no number
 * @throws MappingError if the number is missing, or if one of both is not a text
 */
export function phoneInCountry(phone: Maybe<string>, country: Maybe<string>, field?: string): string {
  const text = ofKind(phone, ['string'], 'phone_unreadable', field);
  return toE164(text, ofKind(country, ['string'], 'country_unreadable', field)) ?? text;
}

/**
 * Reads a time such as "2026-11-21T18:00" or "2026-11-21 18:00:00" as the local time of a zone. If the time has an
 * offset, it is read by this offset instead. When clocks go back, a time that occurs twice means the earlier instant.
 * When they go forward, a time that they skip moves forward over the gap.
 * @param zone an IANA name, such as "Europe/Berlin"
 * @returns the time in RFC 3339, with the zone's offset
 * @throws MappingError
 */
export function timeInZone(time: Maybe<string>, zone: Maybe<string>, field?: string): string {
  const text = ofKind(time, ['string'], 'time_unreadable', field);
  const offsetAt = offsetsOf(zone, field);
  const [, year, month, day, hour, minute, second = '00', offset] = ISO_TIME.exec(text.trim()) ?? [];
  const wall = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const shown = Date.parse(`${wall}Z`);
  // Date.parse reads 30 February as 2 March.
  if (Number.isNaN(shown) || toSecond(shown) !== wall) throw new MappingError('time_unreadable', field);
  const instant = offset === undefined ? instantShown(shown, offsetAt) : shown - readOffset(offset);
  const ahead = offsetAt(instant);
  const clock = toSecond(Math.abs(ahead)).slice(11, 16);
  return `${toSecond(instant + ahead)}${ahead < 0 ? '-' : '+'}${clock}`;
}

/**
 * Reads seconds or milliseconds since 1970, as a number or as text.
 * @returns RFC 3339 in UTC
 * @throws MappingError, also for a time before 2000 or after 2100, which shows that `unit` is wrong
 */
export function timeSinceEpoch(count: Maybe<number | string>, unit: 's' | 'ms', field?: string): string {
  const milliseconds =
    Number(ofKind(count, ['number', 'string'], 'time_unreadable', field)) * (unit === 's' ? 1000 : 1);
  if (count === '' || !(milliseconds >= FIRST_MS && milliseconds < LAST_MS)) {
    throw new MappingError('time_unreadable', field);
  }
  return new Date(milliseconds).toISOString();
}

/** @returns a function that returns the zone's offset from UTC at an instant, in milliseconds */
function offsetsOf(zone: Maybe<string>, field: string | undefined): (instant: number) => number {
  let format: Intl.DateTimeFormat;
  try {
    // Without a zone, the format would use the zone of this machine.
    if (typeof zone !== 'string') throw new RangeError();
    format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
  } catch {
    throw new MappingError('zone_unknown', field);
  }
  return (instant) => readOffset(format.format(instant));
}

/** Finds when the zone's clocks show `shown`, a time read as UTC. No zone changes its clocks twice in two days. */
function instantShown(shown: number, offsetAt: (instant: number) => number): number {
  const [before, after] = [offsetAt(shown - DAY_MS), offsetAt(shown + DAY_MS)];
  // When clocks go back, the offset before the change is larger, so it gives the earlier of the two instants.
  const first = shown - before;
  return offsetAt(first) === before || offsetAt(shown - after) !== after ? first : shown - after;
}

/** Reads the offset of "+0100" or "11/21/2026, GMT+01:00", in milliseconds. Returns 0 if the text has no offset. */
function readOffset(text: string): number {
  const [, sign = '', hours = '0', minutes = '0'] = /([+-])(\d\d):?(\d\d)?/.exec(text) ?? [];
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/** Writes a UTC time as RFC 3339 without its offset: "2026-11-21T18:00:00". */
const toSecond = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 19);
