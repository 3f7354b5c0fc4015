import { randomBytes, randomUUID } from 'node:crypto';

const DISHES = [
  'Pizza Margherita',
  'Pizza Quattro Formaggi',
  'Tagliatelle al Ragù',
  'Caesar Salad',
  'Smash Burger',
  'Sweet Potato Fries',
  'Chicken Tikka Bowl',
  'Poké with Salmon',
  'Crème brûlée',
  'Sparkling Water 0.5 l',
  'Club Sandwich',
  'Tom Kha Gai',
];
const EXTRAS = ['Extra cheese', 'No onions', 'Gluten free', 'Large', 'Spicy', 'Truffle oil', 'Oat milk', 'Well done'];
const NOTES = ['', '', '', 'please cut into slices', 'nut allergy!', 'dressing on the side', 'sauce in a cup'];
const STREETS = ['Lindenstraße', 'High Street', 'Rue de la Paix', 'Via Roma', 'Market Square'];
const NAMES = ['Ada', 'Björn', 'Chloé', 'Dmitri', 'Eleni', 'Farid', 'Grace', 'Hiro'];

const pick = <Each>(list: readonly Each[], nth: number): Each => list[nth % list.length] as Each;
const money = (amount: number): object => ({ amount, currency: 'EUR' });
const uid = (): string => randomBytes(16).toString('base64url');
const onCard = (name: string): object => ({ catalogObjectId: randomUUID(), name });

const MENU = DISHES.map(onCard);
const EXTRAS_OF_MENU = EXTRAS.map(onCard);

/** The items of a till, with different ids and prices. They do not all fit into one order, so none repeats in it. */
const SOLD = Array.from({ length: 1_024 }, (_, nth) => {
  const price = 350 + ((nth * 379) % 1_900);
  const quantity = 1 + (nth % 3);
  const item = {
    uid: uid(),
    ...pick(MENU, nth * 7),
    plu: `PLU-${1_000 + nth}`,
    quantity: String(quantity),
    note: pick(NOTES, nth * 5),
    basePrice: money(price),
    totalPrice: money(price * quantity),
    discount: money(0),
    taxes: [{ uid: uid(), name: 'VAT', percentage: '7', applied: money(Math.round((price * quantity * 7) / 100)) }],
    modifiers: Array.from({ length: nth % 4 }, (_, place) => ({
      uid: uid(),
      ...pick(EXTRAS_OF_MENU, nth + place * 3),
      quantity: '1',
      basePrice: money(50 + ((nth * 53 + place) % 300)),
    })),
  };
  return { item, bytes: Buffer.byteLength(JSON.stringify(item)) + 1 };
});

/**
 * Makes the contents that a POS adds to a status if it sends whole orders: about `bytes` bytes of JSON, different for
 * each `nth`. They are as compressible as real ones: names and fields repeat, ids do not.
 */
export function fillOrder(nth: number, bytes: number): object {
  const items: object[] = [];
  const contents = {
    ticket: randomUUID(),
    version: 1 + (nth % 9),
    source: { name: 'own app', channel: nth % 2 === 0 ? 'delivery' : 'pickup' },
    openedAt: new Date(1_769_800_000_000 + nth * 977).toISOString(),
    customer: {
      name: `${pick(NAMES, nth)} ${pick(NAMES, nth * 3 + 1)}`,
      phone: `+49 30 ${1_000_000 + ((nth * 7_919) % 8_999_999)}`,
      address: `${pick(STREETS, nth)} ${1 + (nth % 180)}`,
    },
    payments: [{ uid: uid(), method: 'card', amount: money((nth * 613) % 9_000), tip: money((nth * 31) % 500) }],
    items,
  };
  let size = JSON.stringify(contents).length;
  for (let place = nth * 131; ; place += 1) {
    const sold = pick(SOLD, place);
    // The size may be half an item too large or too small.
    if (size + sold.bytes / 2 > bytes) return contents;
    items.push(sold.item);
    size += sold.bytes;
  }
}
