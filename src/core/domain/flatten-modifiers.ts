type Nested = { quantity: number; modifiers?: readonly Nested[] | undefined };

/**
 * Flattens nested modifiers for a POS that cannot nest them. Each modifier follows its parent. Its new quantity is for
 * one item: its own quantity times those of its parents.
 */
export function flattenModifiers<Each extends Nested>(modifiers: readonly Each[], times = 1): Each[] {
  return modifiers.flatMap((each) => {
    const quantity = each.quantity * times;
    return [{ ...each, quantity }, ...flattenModifiers((each.modifiers ?? []) as readonly Each[], quantity)];
  });
}
