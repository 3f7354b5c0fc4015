/** Postgres's OID of each type (`SELECT oid, typname FROM pg_type`), and the bytes of one value. */
const TYPES = {
  boolean: {
    oid: 16,
    length: () => 1,
    write: (into: Buffer, at: number, value: boolean) => into.writeUInt8(Number(value), at),
  },
  bytea: {
    oid: 17,
    length: (value: Buffer) => value.length,
    write: (into: Buffer, at: number, value: Buffer) => value.copy(into, at),
  },
  smallint: {
    oid: 21,
    length: () => 2,
    write: (into: Buffer, at: number, value: number) => into.writeInt16BE(value, at),
  },
  integer: {
    oid: 23,
    length: () => 4,
    write: (into: Buffer, at: number, value: number) => into.writeInt32BE(value, at),
  },
  text: {
    oid: 25,
    length: (value: string) => Buffer.byteLength(value),
    write: (into: Buffer, at: number, value: string) => into.write(value, at),
  },
  timestamptz: {
    oid: 1184,
    length: () => 8,
    // Microseconds since 2000-01-01 UTC.
    write: (into: Buffer, at: number, value: Date) =>
      into.writeBigInt64BE(BigInt(value.getTime() - Date.UTC(2000, 0)) * 1000n, at),
  },
  uuid: {
    oid: 2950,
    length: () => 16,
    write: (into: Buffer, at: number, value: string) => {
      if (into.write(value.replaceAll('-', ''), at, 16, 'hex') !== 16) throw new TypeError('a UUID is required');
    },
  },
} as const;

type Type = keyof typeof TYPES;
export type Value<Of extends Type> = Parameters<(typeof TYPES)[Of]['write']>[2];

/** Bytes of the header: dimensions, null flag, type, length, lower bound. */
const HEADER_BYTES = 20;

/**
 * Encodes an array parameter like Postgres's own `array_send`. pg sends a buffer unchanged, but it would encode an
 * array as text. In a statement with hundreds of webhooks, quoting and parsing it would take a tenth of the time.
 */
export function binaryArray<Of extends Type>(type: Of, values: readonly (Value<Of> | null | undefined)[]): Buffer {
  const { oid, length, write } = TYPES[type] as {
    oid: number;
    length(value: Value<Of>): number;
    write(into: Buffer, at: number, value: Value<Of>): void;
  };
  let bytes = HEADER_BYTES;
  for (const value of values) bytes += 4 + (value === null || value === undefined ? 0 : length(value));
  const array = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const field of [1, 1, oid, values.length, 1]) at = array.writeInt32BE(field, at);
  for (const value of values) {
    if (value === null || value === undefined) {
      at = array.writeInt32BE(-1, at);
    } else {
      const size = length(value);
      at = array.writeInt32BE(size, at);
      write(array, at, value);
      at += size;
    }
  }
  return array;
}

/** SQL of each field of a row. */
export type SqlOf<Row> = Record<keyof Row & string, string>;

/** SQL of a JSON object. @param fields the SQL of each field's value */
export function jsonObject(fields: Record<string, string>): string {
  return `json_build_object(${Object.entries(fields)
    .map(([field, sql]) => `'${field}', ${sql}`)
    .join(', ')})`;
}

/**
 * SQL that selects the fields of a schema, so that only the schema lists them.
 * @param others SQL of the fields that are not the column of the same name in snake case
 */
export function fieldsOf<Field extends string>(
  { shape }: { shape: Readonly<Record<Field, unknown>> },
  others: Partial<Record<NoInfer<Field>, string>> = {},
): string {
  const columnOf = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const fields = Object.keys(shape) as Field[];
  return fields.map((field) => `${others[field] ?? columnOf(field)} AS "${field}"`).join(', ');
}

/**
 * Names a statement's parameters, because their numbers change when one is added.
 * @returns `$`, which has the placeholder of each name (`$1`, `$2`, …), and `valuesOf`, which puts values in this order
 */
export function nameParameters<const Name extends string>(
  ...names: Name[]
): { $: Record<Name, string>; valuesOf: (values: Record<Name, unknown>) => unknown[] } {
  return {
    $: Object.fromEntries(names.map((name, nth) => [name, `$${nth + 1}`])) as Record<Name, string>,
    valuesOf: (values) => names.map((name) => values[name]),
  };
}

/**
 * A column of rows that are passed to a statement: its name, its type, and a function that returns an item's value. The
 * optional last element is SQL that converts the value for storage.
 */
export type Column<Item> = {
  [Of in Type]: readonly [
    name: string,
    type: Of,
    valueOf: (item: Item) => Value<Of> | null | undefined,
    stored?: string,
  ];
}[Type];

type Rows<Item> = {
  /** SQL for FROM: the rows as `alias`, numbered from 1 in column `nth`. */
  as(alias: string): string;
  /** SQL of one column's array. */
  array(name: string): string;
  /** The parameters, one for each column. */
  values(items: readonly Item[]): Buffer[];
  /** The number of the next parameter. */
  next: number;
};

/**
 * Passes rows to a statement, as one array parameter for each column. SQL names the columns, never parameter numbers.
 * @param first the number of the first parameter
 */
export function unnestRows<Item>(columns: readonly Column<Item>[], first = 1): Rows<Item> {
  const names = columns.map(([name]) => name);
  const arrays = columns.map(([, type], index) => `$${first + index}::${type}[]`);
  return {
    as: (alias) => `unnest(${arrays.join(', ')}) WITH ORDINALITY AS ${alias}(${names.join(', ')}, nth)`,
    array(name) {
      const array = arrays[names.indexOf(name)];
      if (array === undefined) throw new RangeError(`there is no column ${name}`);
      return `(${array})`;
    },
    values: (items) =>
      columns.map((column, index) => {
        const [, type, valueOf] = column as readonly [
          string,
          Type,
          (item: Item) => Value<Type> | null | undefined,
          string?,
        ];
        const values = items.map(valueOf);
        // An array of NULLs is sent empty, because `unnest` fills shorter arrays with NULLs to the length of the first.
        return binaryArray(type, index > 0 && values.every(isNull) ? [] : values);
      }),
    next: first + columns.length,
  };
}

/** The same column of items that hold the column's own items. @param prefix goes before its name */
export function columnOf<Item, Outer>(
  column: Column<Item>,
  itemOf: (outer: Outer) => Item,
  prefix = '',
): Column<Outer> {
  const [name, type, valueOf] = column as readonly [string, Type, (item: Item) => Value<Type> | null | undefined];
  return [`${prefix}${name}`, type, (outer: Outer) => valueOf(itemOf(outer))] as Column<Outer>;
}

/** The same for one row, whose columns are plain parameters: Postgres starts such a statement faster. */
export function oneRow<Item>(columns: readonly Column<Item>[], first = 1) {
  const fields = columns.map(([name, type], index) => `$${first + index}::${type} AS ${name}`);
  return {
    as: (alias: string) => `(SELECT ${fields.join(', ')}, 1 AS nth) AS ${alias}`,
    values: (item: Item): unknown[] => columns.map(([, , valueOf]) => valueOf(item)),
  };
}

function isNull(value: unknown): boolean {
  return value === null || value === undefined;
}
