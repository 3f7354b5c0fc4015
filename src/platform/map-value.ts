import { MappingError, type MappingCode } from './mapping-error.ts';

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
