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
