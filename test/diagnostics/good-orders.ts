/** Plausible orders, as varied as those of real shops. The same seed makes the same orders. */
import type { OrderInput } from '../../src/core/domain/order-module.ts';
import { sumItems } from '../../src/core/domain/money.ts';
import { repeatably } from '../support/repeatably.ts';

/** Prices of a dish and of an extra, in minor units, with the steps in which shops set them. */
const MARKETS = [
  { currency: 'EUR', country: 'DE', phone: '+493012345678', dish: [290, 2890], extra: 150, steps: [10, 5, 100] },
  { currency: 'USD', country: 'US', phone: '+14155552671', dish: [199, 3499], extra: 125, steps: [1, 25, 100] },
  { currency: 'GBP', country: 'GB', phone: '+442079460018', dish: [250, 2400], extra: 100, steps: [5, 50, 100] },
  { currency: 'CHF', country: 'CH', phone: '+41446681800', dish: [450, 5900], extra: 250, steps: [10, 50, 100] },
  { currency: 'BRL', country: 'BR', phone: '+551133334444', dish: [900, 9900], extra: 400, steps: [10, 100] },
  { currency: 'SEK', country: 'SE', phone: '+46812345678', dish: [3500, 29_500], extra: 1500, steps: [100, 500] },
  { currency: 'INR', country: 'IN', phone: '+912212345678', dish: [4000, 95_000], extra: 3000, steps: [100, 500] },
  { currency: 'HUF', country: 'HU', phone: '+3612345678', dish: [79_000, 899_000], extra: 30_000, steps: [1000] },
  { currency: 'TRY', country: 'TR', phone: '+902123456789', dish: [9000, 250_000], extra: 4000, steps: [500] },
  { currency: 'JPY', country: 'JP', phone: '+81312345678', dish: [180, 4800], extra: 100, steps: [1, 10, 100] },
  { currency: 'CLP', country: 'CL', phone: '+56221234567', dish: [1900, 32_000], extra: 900, steps: [10, 100] },
  { currency: 'VND', country: 'VN', phone: '+842412345678', dish: [25_000, 450_000], extra: 10_000, steps: [1000] },
  { currency: 'KWD', country: 'KW', phone: '+96522345678', dish: [250, 9500], extra: 150, steps: [5, 50, 250] },
] as const;

const DISHES =
  'Margherita|Käsespätzle|寿司セット|شاورما|Пельмени|B-52|7-Up|Menu 12|Pad Thai (No. 66)|H2O still|Cuvée 2019|Phở bò|🍕 of the day|T-Bone 400 g|IPA 0.33 l|Cola|Jalapeño-Cheddar'.split(
    '|',
  );
const EXTRAS = 'Extra cheddar|No onions|Sauce à part|チーズ|2 × dip|XL'.split('|');
const MEMBERS = ['Ada Lovelace', 'Murasaki', 'محمد علي', 'José O’Connor-Núñez', 'Guest', 'Björk', 'Li'];
const ID_KINDS = [
  (nth: number) => `SKU-${1000 + nth}`,
  (nth: number) => `${nth}`,
  (nth: number) => `gid://shop/Variant/${nth}`,
  (nth: number) => `019c1f6e-5d2a-7c41-8f6b-${String(nth).padStart(12, '0')}`,
  (nth: number) => `${DISHES[nth % DISHES.length]?.toLowerCase().replaceAll(' ', '-')}-${nth}`,
];
const RATES = [0, 5, 7, 7.7, 8, 10, 19, 20, 27];
const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;

type Item = OrderInput['items'][number];

export function goodOrders(count: number, seed: number, now: Date): OrderInput[] {
  const next = repeatably(seed);
  const below = (limit: number): number => Math.floor(next() * limit);
  const chance = (probability: number): boolean => next() < probability;
  const pick = <Value>(from: readonly Value[]): Value => from[below(from.length)] as Value;
  const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();

  const itemsOf = ({ dish: [least, most], extra, steps }: (typeof MARKETS)[number]): Item[] => {
    const step = pick(steps);
    const idOf = pick(ID_KINDS);
    const priceFrom = (from: number, to: number): number =>
      Math.max(step, Math.round((from + below(to - from)) / step) * step);
    const extraOf = (levels: number): NonNullable<Item['modifiers']>[number] => ({
      serviceModifierId: idOf(500 + below(EXTRAS.length)),
      name: pick(EXTRAS),
      quantity: chance(0.9) ? 1 : 2,
      ...(chance(0.7) && { unitPrice: chance(0.2) ? 0 : priceFrom(extra / 2, extra * 2) }),
      ...(levels > 1 && chance(0.2) && { modifiers: [extraOf(levels - 1)] }),
    });
    const lines = chance(0.05) ? 40 + below(60) : 1 + below(8);
    const items = Array.from({ length: lines }, (_, nth): Item => {
      const name = DISHES[nth % DISHES.length] ?? '';
      return {
        serviceItemId: chance(0.05) ? `Word ${nth}` : idOf(nth),
        name: nth < DISHES.length ? name : `${name} ${nth}`,
        quantity: chance(0.7) ? 1 : 1 + below(6),
        unitPrice: nth > 0 && chance(0.03) ? 0 : priceFrom(nth === 0 ? (least + most) / 3 : least, most),
        ...(chance(0.2) && { notes: pick(['well done', 'ohne Salz', '辛くない']) }),
        ageRestricted: chance(0.1),
        modifiers: Array.from({ length: chance(0.5) ? 0 : 1 + below(3) }, () => extraOf(3)),
      };
    });
    const first = { ...items[0] } as Item;
    first.name += ' 200 g';
    items[0] = first;
    const again = [
      { modifiers: [{ serviceModifierId: 'again', name: 'No onions', quantity: 1 }] },
      { notes: 'for the child' },
      // The second one is free.
      { unitPrice: 0 },
      // A weight is a part of the name.
      { name: first.name.replace('200', '250'), unitPrice: (first.unitPrice ?? 0) + step },
    ].map((change) => ({ ...first, ...change }));
    const platter = { ...first, serviceItemId: 'platter', name: 'Party platter', quantity: 1, unitPrice: most * 8 };
    return [...items, ...(chance(0.3) ? [pick(again)] : []), ...(chance(0.03) ? [platter] : [])];
  };

  return Array.from({ length: count }, (_, nth): OrderInput => {
    const market = pick(MARKETS);
    const items = itemsOf(market);
    const subtotal = sumItems(items as Parameters<typeof sumItems>[0]);
    const discount = chance(0.8) ? 0 : chance(0.3) ? subtotal : Math.round(subtotal / (2 + below(9)));
    const fees = chance(0.5)
      ? []
      : [
          { name: 'Bag', amount: market.extra },
          { name: 'Delivery', amount: below(market.extra * 4) },
        ];
    const fee = fees.reduce((sum, { amount }) => sum + amount, 0);
    const tip = chance(0.7) ? 0 : below(market.extra * 5);
    const isOnTop = chance(0.5);
    const rate = pick(RATES);
    const base = subtotal - discount + fee;
    const tax = Math.round(isOnTop ? (base * rate) / 100 : (base * rate) / (100 + rate));
    const half = Math.floor(tax / 2);
    const taxes = chance(0.5)
      ? [{ name: 'VAT', amount: tax, rate }]
      : [
          { name: 'State', amount: half, rate: rate / 2 },
          { name: 'City', amount: tax - half, rate: rate / 2 },
        ];
    const placed = now.getTime() - (chance(0.1) ? -2 * MINUTE_MS : below(360) * DAY_MS + below(1440) * MINUTE_MS);
    const wanted = pick([undefined, placed + DAY_MS, placed - 40 * MINUTE_MS, placed + 90 * DAY_MS]);
    const destination = {
      line1: 'Lindenstraße 14',
      ...(chance(0.8) && { country: chance(0.8) ? market.country : market.country.toLowerCase() }),
    };
    return {
      serviceOrderId: `good-${nth}`,
      locationId: 'club-1',
      member: { id: `m-${nth}`, name: pick(MEMBERS), ...(chance(0.7) && { phone: market.phone }) },
      fulfillment: {
        ...(chance(0.5) ? { type: 'pickup' } : { type: 'delivery', destination }),
        ...(wanted !== undefined && { requestedAt: iso(wanted) }),
      },
      items,
      money: {
        subtotal,
        ...(discount > 0 && { discount }),
        ...(chance(0.5) && { pricesIncludeTax: !isOnTop }),
        tax,
        tip,
        fee,
        total: subtotal - discount + (isOnTop ? tax : 0) + tip + fee,
        currency: market.currency,
      },
      ...(discount > 0 && chance(0.5) && { discounts: [{ name: 'Club', amount: discount }] }),
      ...(chance(0.5) && { fees }),
      ...(chance(0.5) && { taxes }),
      ...(chance(0.2) && { notes: 'Klingel defekt 🔔' }),
      placedAt: iso(placed),
    };
  });
}
