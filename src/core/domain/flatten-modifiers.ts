type Nested = { quantity: number; modifiers?: readonly Nested[] | undefined };

/**
 * Flattens nested modifiers for a POS that cannot nest them. Each modifier follows its parent. Each quantity is for one
 * item.
 */
export function flattenModifiers<Each extends Nested>(modifiers: readonly Each[], times = 1): Each[] {
  return modifiers.flatMap((each) => {
    const quantity = each.quantity * times;
    return [{ ...each, quantity }, ...flattenModifiers((each.modifiers ?? []) as readonly Each[], quantity)];
  });
}
