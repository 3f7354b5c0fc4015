import { describe, expect, it } from 'vitest';
import { changesInWords } from '../../../src/core/contacts/changes-in-words.ts';
import { LANGUAGES } from '../../../src/core/contacts/contact.ts';
import { kitchenChanges } from '../../../src/core/domain/kitchen-changes.ts';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';

type Item = Partial<CanonicalOrder['items'][number]>;
const burger = (about: Item = {}): CanonicalOrder['items'][number] => ({
  serviceItemId: 'burger',
  name: 'Burger',
  quantity: 1,
  unitPrice: 900,
  ageRestricted: false,
  modifiers: [],
  ...about,
});
const fries = (about: Item = {}) => burger({ serviceItemId: 'fries', name: 'Fries', ...about });
const onions = { serviceModifierId: 'm1', name: 'No onions', quantity: 1 };
const cheese = { serviceModifierId: 'm2', name: 'Cheese', quantity: 2, unitPrice: 100 };
const order = (about: Partial<CanonicalOrder> = {}): CanonicalOrder => ({
  serviceOrderId: 'order-4711',
  locationId: 'club-1',
  member: { id: 'member-1', name: 'Ada Lovelace', phone: '+4930123456', email: 'ada@example.com' },
  fulfillment: { type: 'delivery', destination: { line1: 'Main Street 1' }, requestedAt: '2027-01-31T18:00:00Z' },
  items: [burger()],
  money: { subtotal: 900, tax: 0, tip: 0, fee: 0, total: 900, currency: 'EUR' },
  placedAt: '2027-01-31T17:00:00Z',
  ...about,
});
const to = (destination: object): CanonicalOrder['fulfillment'] =>
  ({ ...order().fulfillment, destination }) as CanonicalOrder['fulfillment'];
const wanted = (requestedAt: string | undefined): CanonicalOrder['fulfillment'] => ({
  type: 'pickup',
  ...(requestedAt !== undefined && { requestedAt }),
});
const changed = (was: Partial<CanonicalOrder>, is: Partial<CanonicalOrder>): string[] =>
  changesInWords(kitchenChanges(order(was), order(is)), 'en', 'Europe/Berlin');

describe('the difference for the kitchen or the driver', () => {
  it.each([
    ['1 × Fries added', {}, { items: [burger(), fries()] }],
    ['1 × Fries removed', { items: [burger(), fries()] }, {}],
    ['2 × Burger instead of 1', {}, { items: [burger({ quantity: 2 })] }],
    ['2 × Burger instead of 1', {}, { items: [burger(), burger({ serviceItemId: 'another' })] }],
    ['the note of Burger is changed', {}, { items: [burger({ notes: 'for Ada' })] }],
    [
      '2 × Burger instead of 1',
      { items: [burger({ notes: 'rare' })] },
      { items: [burger({ quantity: 2, notes: 'rare' })] },
    ],
    ['the note of the order is changed', { notes: 'for Ada' }, { notes: 'for Grace' }],
    ['the address is changed', {}, { fulfillment: to({ line1: 'Main Street 1', instructions: 'ring twice' }) }],
    ['picked up instead of delivered', {}, { fulfillment: wanted('2027-01-31T18:00:00Z') }],
    ['the name or telephone number is changed', {}, { member: { id: 'member-1', name: 'Grace Hopper' } }],
    ['it is for another location', {}, { locationId: 'club-2' }],
  ])('is "%s"', (words, was, is) => {
    expect(changed(was, is)).toEqual([words]);
    expect(changed(was, is).join()).not.toMatch(/Ada|Grace|Main Street|twice/);
  });

  it.each([
    ['at 20:30 instead of 20:00', '2027-01-31T19:00:00Z', '2027-01-31T19:30:00Z'],
    ['at 20:30 instead of 20:00', '2027-01-31T20:00:00+01:00', '2027-01-31T20:30:00+01:00'],
    ['at 1 Feb, 00:10 instead of 31 Jan, 23:50', '2027-01-31T22:50:00Z', '2027-01-31T23:10:00Z'],
    ['at 31 Jan, 20:30 instead of as soon as possible', undefined, '2027-01-31T19:30:00Z'],
    ['as soon as possible instead of 31 Jan, 20:30', '2027-01-31T19:30:00Z', undefined],
  ])('is "wanted %s" in the restaurant\'s time', (words, was, is) => {
    const [said = ''] = changed({ fulfillment: wanted(was) }, { fulfillment: wanted(is) });
    expect(said.replaceAll(/([A-Z][a-z]{2}) (\d+)/g, '$2 $1')).toBe(`wanted ${words}`);
  });

  it('names an item with its modifiers in one order, and says which of them is new', () => {
    const is = burger({ modifiers: [{ ...onions, modifiers: [cheese] }, cheese] });
    expect(changed({}, { items: [is] })).toEqual([
      '1 × Burger (2 × Cheese, No onions (2 × Cheese)) added',
      '1 × Burger removed',
    ]);
    const was = burger({ modifiers: [cheese, { ...onions, modifiers: [cheese] }] });
    expect(changed({ items: [was] }, { items: [is] })).toEqual([]);
  });

  it.each([
    ['amounts', { money: { ...order().money, tip: 200, total: 1_100 } }],
    ['prices and ids of items', { items: [burger({ unitPrice: 1, serviceItemId: 'other' })] }],
    ['the e-mail address', { member: { ...order().member, email: 'grace@example.com' } }],
    [
      'the zone of the wanted time',
      { fulfillment: { ...order().fulfillment, requestedAt: '2027-01-31T19:00:00+01:00' } },
    ],
    ['blanks around a note', { notes: ' ' }],
    ['fields of the address without a value', { fulfillment: to({ city: undefined, line1: 'Main Street 1' }) }],
  ])('is empty if only %s differ', (_, is) => expect(changed({}, is as Partial<CanonicalOrder>)).toEqual([]));

  it('is empty if a line with a note is written as two', () => {
    const was = [burger({ quantity: 2, notes: 'rare' })];
    expect(changed({ items: was }, { items: [burger({ notes: 'rare' }), burger({ notes: 'rare ' })] })).toEqual([]);
  });

  it('says that the notes are changed if they are for other quantities', () => {
    const was = [burger({ notes: 'rare' }), burger()];
    expect(changed({ items: was }, { items: [burger({ quantity: 2, notes: 'rare' })] })).toEqual([
      'the note of Burger is changed',
    ]);
    expect(changed({ items: was }, { items: [burger({ notes: 'rare' }), burger({ quantity: 2 })] })).toEqual([
      '3 × Burger instead of 2',
    ]);
    expect(changed({}, { items: [burger(), fries({ notes: 'no salt' })] })).toEqual([
      '1 × Fries added',
      'the note of Fries is changed',
    ]);
  });

  it('is empty if only the order of the items differs', () => {
    expect(changed({ items: [burger(), fries()] }, { items: [fries(), burger()] })).toEqual([]);
  });

  it('is in words of each language, without an empty one', () => {
    const all = kitchenChanges(order({ items: [burger(), fries()] }), {
      ...order({ notes: 'x', locationId: 'club-2', member: { id: '1', name: 'Grace' } }),
      items: [burger({ quantity: 2, notes: 'x' }), burger({ name: 'Cola' })],
      fulfillment: wanted(undefined),
    });
    expect(all).toHaveLength(9);
    const said = LANGUAGES.map((language) => changesInWords(all, language));
    for (const words of said) expect(words.every((each) => each.length > 4 && !each.includes('undefined'))).toBe(true);
    expect(new Set(said.flat()).size).toBe(9 * LANGUAGES.length);
  });

  it('names 20 differences of items, how many more there are, and all others', () => {
    const many = Array.from({ length: 3_000 }, (_, nth) => fries({ name: `Fries ${nth}` }));
    const changes = kitchenChanges(order(), order({ items: [burger(), ...many], notes: 'x' }));
    for (const language of LANGUAGES) {
      const said = changesInWords(changes, language);
      expect(said).toHaveLength(22);
      expect(said[20]).toMatch(/^2980 \w{4}/);
      expect(said.at(-1)).toBe(changesInWords([{ what: 'note' }], language)[0]);
    }
  });

  it('cuts a long name, and keeps a text that can be stored', () => {
    const [change] = kitchenChanges(order(), order({ items: [burger(), fries({ name: '🍟'.repeat(80) })] }));
    const { name } = change as { name: string };
    expect([name.length <= 101, name.isWellFormed()]).toEqual([true, true]);
  });
});
