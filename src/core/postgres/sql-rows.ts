import { binaryArray, type Type, type Value } from './binary-array.ts';

/** SQL of a JSON object. @param fields the SQL of each field's value */
export function jsonObject(fields: Record<string, string>): string {
  return `json_build_object(${Object.entries(fields)
    .map(([field, sql]) => `'${field}', ${sql}`)
    .join(', ')})`;
}

/**
 * Gives a statement's parameters names, instead of numbers that shift when one is added.
 * @returns `$1`, `$2`, … by name for the text, and the values of one run in their order
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
 * A column of the rows passed to a statement: its name there, its type, and a function for an item's value. The last
 * element, if any, is the SQL for storing it in another shape.
 */
export type Column<Item> = {
  [Of in Type]: readonly [
    name: string,
    type: Of,
    valueOf: (item: Item) => Value<Of> | null | undefined,
    stored?: string,
  ];
}[Type];

export type Rows<Item> = {
  /** SQL for FROM: the rows as `alias`, numbered from 1 in the column `nth`. */
  as(alias: string): string;
  /** SQL of one column's array. */
  array(name: string): string;
  /** The parameters, one for each column. */
  values(items: readonly Item[]): Buffer[];
  /** The number of the next parameter. */
  next: number;
};

/**
 * Rows as parameters of a statement, an array for each column. Columns are used by name, never by a parameter's number.
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
        // Some columns mostly are empty, and `unnest` fills up what is shorter with NULLs, to the length of the first.
        return binaryArray(type, index > 0 && values.every(isNull) ? [] : values);
      }),
    next: first + columns.length,
  };
}

function isNull(value: unknown): boolean {
  return value === null || value === undefined;
}
