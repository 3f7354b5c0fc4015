import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import { flattenModifiers } from '../../core/domain/flatten-modifiers.ts';
import type { CanonicalOrder, Modifier } from '../../core/domain/order.ts';
import { cutText } from '../order-texts.ts';
import { entryOf } from '../shared-settings.ts';
import { MENU_ID, type MenuEntry, type Settings } from './payloads.ts';

// https://doc.toasttab.com/doc/devguide/apiSpecifyingModifiersAndInstructions.html

/** Characters of a special request. */
export const SPECIAL_REQUEST_MAX = 1000;

/** The most modifiers of an order. Toast publishes no limit. */
const MODIFIERS_MAX = 500;

/** The form of an id without an entry in `itemMap`. */
const PLAIN = new RegExp(`^(${MENU_ID})/(${MENU_ID})$`);

type Item = CanonicalOrder['items'][number];
type Group = 'itemGroup' | 'optionGroup';

/**
 * Writes a line of the order as Toast's selection. Prices are those of Toast's menu.
 * @throws NeedsOperator if neither `itemMap` nor the id itself names the place in Toast's menu
 */
export function writeSelection(item: Item, settings: Settings) {
  const { quantity } = item;
  const { itemMap } = settings;
  const requests = [item.ageRestricted ? 'AGE CHECK' : '', item.notes ?? ''].filter((text) => text.trim() !== '');
  return {
    ...referTo(item.serviceItemId, 'itemGroup', itemMap),
    quantity,
    modifiers: [
      ...item.modifiers.flatMap((modifier) => writeModifier(modifier, quantity, itemMap)),
      // The kitchen's displays show special requests of items, but not those of the whole check.
      ...requests.map((text) => specialRequest(text, quantity, 'optionGroup', settings)),
    ],
  };
}

/**
 * Limits the modifiers. Each is a selection of its own, so the body grows with them.
 * @throws GiveUp for more than any meal has
 */
export function limitModifiers(items: readonly Item[]): void {
  const count = items
    .flatMap(({ modifiers }) => flattenModifiers(modifiers))
    .reduce((sum, { quantity }) => sum + quantity, 0);
  if (count <= MODIFIERS_MAX) return;
  throw new GiveUp(
    `the quantities of the order's modifiers come to ${count}: Toast wants each piece as a modifier of its own, and ` +
      `no more than ${MODIFIERS_MAX} are sent`,
    { reason: 'The restaurant cannot take this many extras in one order.', reasonCode: 'technical' },
  );
}

/** Repeats a modifier instead of counting it: Toast refuses a modifier whose quantity is not its item's. */
function writeModifier(modifier: Modifier, quantity: number, itemMap: Settings['itemMap']): object[] {
  const selection = {
    ...referTo(modifier.serviceModifierId, 'optionGroup', itemMap),
    quantity,
    modifiers: (modifier.modifiers ?? []).flatMap((nested) => writeModifier(nested, quantity, itemMap)),
  };
  return Array.from({ length: modifier.quantity }, () => selection);
}

/**
 * A special request: among an item's modifiers it is about the item, among the check's selections about the order.
 * Selection: https://doc.toasttab.com/openapi/orders/tag/Data-definitions/schema/Selection/
 */
export function specialRequest(text: string, quantity: number, group: Group, { specialRequestItem: entry }: Settings) {
  return {
    selectionType: 'SPECIAL_REQUEST',
    displayName: cutText(text, SPECIAL_REQUEST_MAX),
    quantity,
    ...(entry && { item: reference(entry.item), [group]: reference(entry[group]) }),
  };
}

/** The item's id in Toast's menu, where it is known. */
export function menuIdOf(serviceItemId: string, { itemMap }: Settings): string | undefined {
  return (entryOf(itemMap, serviceItemId) ?? readPlain(serviceItemId, 'itemGroup'))?.item;
}

function referTo(id: string, group: Group, itemMap: Settings['itemMap']) {
  const entry = entryOf(itemMap, id) ?? readPlain(id, group);
  const name = JSON.stringify(id);
  if (entry === undefined) {
    throw new NeedsOperator(
      `itemMap[${name}] is missing, and the id itself is not <${group}'s id>/<item's id>, GUIDs or multiLocationIds`,
    );
  }
  const groupId = entry[group];
  if (groupId === undefined) throw new NeedsOperator(`itemMap[${name}].${group} is missing`);
  return { item: reference(entry.item), [group]: reference(groupId) };
}

/**
 * Writes a reference by one kind of id: Toast refuses both at once.
 * https://doc.toasttab.com/doc/devguide/apiUsingMultiLocationIdsInOrders.html
 */
function reference(id: string): { guid: string } | { multiLocationId: string } {
  return id.includes('-') ? { guid: id } : { multiLocationId: id };
}

function readPlain(id: string, group: Group): MenuEntry | undefined {
  const [, groupId, item] = PLAIN.exec(id) ?? [];
  return item === undefined ? undefined : { item, [group]: groupId };
}
