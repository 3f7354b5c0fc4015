import { isDeepStrictEqual } from 'node:util';
import type { CanonicalOrder, Modifier } from './order.ts';

/**
 * A difference that the kitchen or the driver acts on, without the texts that only the member wrote. `was` and `is` are
 * quantities, or RFC 3339 times where null is as soon as possible.
 */
export type KitchenChange =
  | { what: 'item'; name: string; was: number; is: number }
  | { what: 'item_note'; name: string }
  /** So many of both kinds that are left out. */
  | { what: 'more'; count: number }
  | { what: 'wanted'; was: string | null; is: string | null }
  | { what: 'pickup' | 'delivery' | 'note' | 'address' | 'member' | 'location' };

/** The most characters of an item with its modifiers. */
const NAME = 100;
/** The most differences of items. The text goes to a telephone, too. */
const ITEMS = 20;

/**
 * Says what differs for the kitchen or the driver. Amounts, ids and the order of the lines do not count.
 * @returns an empty list if nothing differs for them
 */
export function kitchenChanges(was: CanonicalOrder, is: CanonicalOrder): KitchenChange[] {
  const differs = (of: (order: CanonicalOrder) => unknown): boolean => !isDeepStrictEqual(of(was), of(is));
  const ofItems = itemChanges(linesOf(was), linesOf(is));
  // guard: few-items-told
  const changes = ofItems.slice(0, ITEMS);
  if (ofItems.length > ITEMS) changes.push({ what: 'more', count: ofItems.length - ITEMS });
  const [before, after] = [was.fulfillment, is.fulfillment];
  if (differs(({ notes }) => notes?.trim() ?? '')) changes.push({ what: 'note' });
  if (differs(({ fulfillment }) => Date.parse(fulfillment.requestedAt ?? '')))
    changes.push({ what: 'wanted', was: before.requestedAt ?? null, is: after.requestedAt ?? null });
  if (before.type !== after.type) changes.push({ what: after.type });
  else if (after.type === 'delivery' && differs(addressOf)) changes.push({ what: 'address' });
  if (differs(({ member: { name, phone } }) => [name, phone])) changes.push({ what: 'member' });
  if (differs(({ locationId }) => locationId)) changes.push({ what: 'location' });
  return changes;
}

/** Without undefined fields, which a stored order does not have. */
const addressOf = ({ fulfillment: { destination } }: CanonicalOrder): object =>
  Object.fromEntries(Object.entries(destination ?? {}).filter(([, value]) => value !== undefined));

/** `notes` has how many of the items have each note. */
type Line = { quantity: number; notes: Map<string, number> };
const none = (): Line => ({ quantity: 0, notes: new Map() });

/** True if the notes differ, other than that more or fewer items have the note that all of them have. */
function isNoted(was: Line, is: Line): boolean {
  const [note = ''] = is.notes.keys();
  const isOfAll = [was, is].every(({ quantity, notes }) => quantity > 0 && notes.get(note) === quantity);
  return is.quantity > 0 && !isOfAll && !isDeepStrictEqual(was.notes, is.notes);
}

/** Adds up the items with the same modifiers. */
function linesOf({ items }: CanonicalOrder): Map<string, Line> {
  const lines = new Map<string, Line>();
  for (const { name, quantity, notes = '', modifiers } of items) {
    const whole = named(name, modifiers);
    const line = lines.get(whole) ?? none();
    lines.set(whole, line);
    line.quantity += quantity;
    const note = notes.trim();
    if (note !== '') line.notes.set(note, (line.notes.get(note) ?? 0) + quantity);
  }
  return lines;
}

/** Writes `Burger (2 × Cheese, No onions)`. Modifiers are sorted, because their order means nothing. */
function named(name: string, modifiers: readonly Modifier[] = []): string {
  const added = modifiers.map(
    (each) => (each.quantity === 1 ? '' : `${each.quantity} × `) + named(each.name, each.modifiers),
  );
  const short = name.replaceAll(/\s+/g, ' ').trim();
  return added.length === 0 ? short : `${short} (${added.toSorted().join(', ')})`;
}

function itemChanges(was: ReadonlyMap<string, Line>, is: ReadonlyMap<string, Line>): KitchenChange[] {
  return [...new Set([...is.keys(), ...was.keys()])].flatMap((whole): KitchenChange[] => {
    const [before, after] = [was.get(whole) ?? none(), is.get(whole) ?? none()];
    const name = whole.length <= NAME ? whole : `${whole.slice(0, NAME - 1).toWellFormed()}…`;
    return [
      ...(before.quantity === after.quantity
        ? []
        : [{ what: 'item', name, was: before.quantity, is: after.quantity } as const]),
      ...(isNoted(before, after) ? [{ what: 'item_note', name } as const] : []),
    ];
  });
}
