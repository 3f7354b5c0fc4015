import { minorDigits } from '../core/domain/money.ts';
import { toE164 } from '../core/domain/to-e164.ts';

/** Range of plausible order times. A time outside was read in the wrong unit. */
const FIRST_MS = Date.UTC(2000);
const LAST_MS = Date.UTC(2100);
/** Maximum error of a JSON number against its decimal, as of 0.1 + 0.2. */
const FLOAT_ERROR = 1e-6;

/** What mappers' functions throw. `code` and `field` reach the operator, but not the value: it may be member data. */
export class MappingError extends Error {
  override readonly name = 'MappingError';
  readonly code: MappingCode;
  /** The field, if the mapper named it. */
  readonly field: string | undefined;

  constructor(code: MappingCode, field: string | undefined) {
    super(field === undefined ? SENTENCES[code] : `${field}: ${SENTENCES[code]}`);
    this.code = code;
    this.field = field;
  }
}

const SENTENCES = {
  amount_unreadable: 'is not a decimal such as 12.90',
  amount_too_exact: 'has more decimals than its currency',
  amount_too_large: 'is larger than any amount',
  currency_unreadable: 'is not an ISO 4217 code such as EUR',
  enum_unmapped: 'has a value that is not in the table',
  location_unmapped: 'is a location that is not in the table',
  time_unreadable: 'is not a time',
  zone_unknown: 'is not a time zone such as Europe/Berlin',
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
 * Maps a value of an enum: `mapEnum(type, { DELIVERY: 'delivery', TAKEAWAY: 'pickup' }, 'type')`. A value that is not
 * in the table is an error: a default may send food to the wrong place.
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
 * Maps the platform's location id to ours.
 * @throws MappingError
 */
export function mapLocation(
  id: string | number | null | undefined,
  table: Readonly<Record<string, string>>,
  field?: string,
): string {
  return lookUp(id, table, 'location_unmapped', field);
}

/** Reads only an object's own keys: a value may be called "constructor". */
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
 * Reads a telephone number in a country's national format: "030 12345678" in DE is "+493012345678". The destination's
 * country is tried without this; only the mapper knows a restaurant's, for example.
 * @param country ISO 3166-1 alpha-2
 * @returns E.164, or the unchanged text if it is not a number, which the order then leaves out
 */
export function phoneInCountry(phone: string, country: string): string {
  return toE164(phone, country) ?? phone;
}

/**
 * Reads a time without a zone, such as "2026-11-21T18:00" or "2026-11-21 18:00:00", as local time of a zone. A time
 * with an offset is that instant. An ambiguous time is the earlier instant; a skipped time moves forward over the gap.
 * @param zone an IANA name, such as "Europe/Berlin"
 * @returns RFC 3339 with the offset
 * @throws MappingError
 */
export function timeInZone(time: string, zone: string, field?: string): string {
  const text = time.trim();
  // A date alone would become midnight.
  if (!/\d[t ]\d\d/i.test(text)) throw new MappingError('time_unreadable', field);
  let zoned: Temporal.ZonedDateTime;
  try {
    zoned = hasOffset(text)
      ? Temporal.Instant.from(text).toZonedDateTimeISO(zone)
      : Temporal.PlainDateTime.from(text).toZonedDateTime(zone);
  } catch {
    throw new MappingError(isZone(zone) ? 'time_unreadable' : 'zone_unknown', field);
  }
  return zoned.toString({ timeZoneName: 'never', smallestUnit: 'second' });
}

/**
 * Reads seconds or milliseconds since 1970, as a number or as text.
 * @returns RFC 3339 in UTC
 * @throws MappingError also for a time before 2000 or after 2100, which has the other unit
 */
export function timeSinceEpoch(count: number | string, unit: 's' | 'ms', field?: string): string {
  const milliseconds = Number(count) * (unit === 's' ? 1000 : 1);
  if (count === '' || !(milliseconds >= FIRST_MS && milliseconds < LAST_MS)) {
    throw new MappingError('time_unreadable', field);
  }
  return new Date(milliseconds).toISOString();
}

function hasOffset(text: string): boolean {
  // The search begins after the date, which has its own hyphens.
  return /(?:z|[+-]\d\d(?::?\d\d)?)$/i.test(text.slice(text.search(/[t ]/i)));
}

function isZone(zone: string): boolean {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone);
    return true;
  } catch {
    return false;
  }
}
