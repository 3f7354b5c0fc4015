import { binaryArray, type Type, type Value } from './binary-array.ts';

/**
 * A column of rows that a statement is given: its name there, its type, and where an item's value comes from. Last, where
 * the statement stores it in another shape, the SQL of that.
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
  /** SQL, for FROM: the rows as `alias`, with the place of each from 1 on in the column `nth`. */
  as(alias: string): string;
  /** SQL: one column's array. */
  array(name: string): string;
  /** The parameters, one for each column. */
  values(items: readonly Item[]): Buffer[];
  /** The number of the first parameter behind these. */
  next: number;
};

/**
 * Rows as parameters of a statement, an array for each column. A column is named here alone, so the number of its
 * parameter is nobody's concern.
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
      columns.map((column) => {
        const [, type, valueOf] = column as readonly [
          string,
          Type,
          (item: Item) => Value<Type> | null | undefined,
          string?,
        ];
        return binaryArray(type, items, valueOf);
      }),
    next: first + columns.length,
  };
}
