type Nested = { quantity: number; modifiers?: readonly Nested[] | undefined };

/**
 * Lists modifiers with all that they nest, each behind what it belongs to: how a POS that cannot nest gets them. Each
 * quantity is for one of the item.
 */
export function flattenModifiers<Each extends Nested>(modifiers: readonly Each[], times = 1): Each[] {
  return modifiers.flatMap((each) => {
    const quantity = each.quantity * times;
    return [{ ...each, quantity }, ...flattenModifiers((each.modifiers ?? []) as readonly Each[], quantity)];
  });
}
