import { deepEqual, equal, throws } from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readCanonicalOrder, type OrderInput } from 'expediter-platform';
import { cancelled, errorCode, toCanonicalOrder, type Purchase } from './map-order.ts';
import { purchases } from './purchases.ts';

const [berlin, tokyo] = purchases as [Purchase, Purchase];
const map = (purchase: Purchase) => toCanonicalOrder({ purchase }) as OrderInput;

describe('a purchase of Feast', () => {
  it('becomes a canonical order with nothing left out', () => {
    for (const purchase of purchases) {
      const { order, leftOut } = readCanonicalOrder(map(purchase), { serviceOrderId: purchase.code });
      equal(order.items.length, purchase.positions.length);
      deepEqual(leftOut, []);
    }
  });

  it('has amounts in minor units of its currency', () => {
    const gross = { pricesIncludeTax: true };
    const inEuro = { subtotal: 3360, tax: 536, tip: 300, fee: 0, total: 3660, currency: 'EUR', ...gross };
    deepEqual(map(berlin).money, inEuro);
    const inYen = { subtotal: 1290, tax: 117, tip: 0, fee: 350, total: 1640, currency: 'JPY', ...gross };
    deepEqual(map(tokyo).money, inYen);
    equal(map(berlin).items[0]?.modifiers?.[0]?.unitPrice, 150);
  });

  it("has times in the restaurant's time zone", () => {
    equal(map(berlin).fulfillment.requestedAt, '2026-11-21T18:30:00+01:00');
    equal(map(berlin).placedAt, '2026-11-21T17:30:00.000Z');
    equal(map(tokyo).fulfillment.requestedAt, null);
  });

  it('has one line for the name and one for the street address', () => {
    equal(map(berlin).member.name, 'Ada Lovelace');
    equal(map(berlin).member.phone, '+493012345678');
    equal(map(tokyo).member.name, 'Murasaki');
    equal(map(tokyo).fulfillment.destination?.line1, '1-8-5 Jingumae');
  });

  it('requires an age check for items with a minimum age', () => {
    deepEqual(
      map(berlin).items.map((item) => item.ageRestricted),
      [false, true],
    );
  });

  it('is held if its restaurant or handover is not mapped, and the error names the field', () => {
    const elsewhere = { ...berlin, restaurant: { ...berlin.restaurant, id: 99 } };
    throws(() => map(elsewhere), { code: 'location_unmapped', field: 'restaurant' });
    throws(() => map({ ...berlin, handover: 'DRONE' }), { code: 'enum_unmapped', field: 'handover' });
  });

  it('is skipped if it is for a table', () => {
    deepEqual(toCanonicalOrder({ purchase: { ...berlin, handover: 'DINE_IN' } }), { skipped: 'dine_in' });
  });

  it('is cancelled by its time alone', () => {
    equal(cancelled({ purchase: berlin }), null);
    const emptied = { ...berlin, cancelledTs: berlin.createdTs + 60, positions: [] };
    deepEqual(cancelled({ purchase: emptied }), { cancelledAt: '2026-11-21T17:31:00.000Z' });
  });

  it('is held if an amount is unreadable', () => {
    const [burger] = berlin.positions;
    const unpriced = { ...burger, unitPrice: null } as never;
    throws(() => map({ ...berlin, positions: [unpriced] }), { code: 'value_missing', field: 'items.0.unitPrice' });
    throws(() => map({ ...berlin, totals: { ...berlin.totals, grand: '36,60' } }), { code: 'amount_unreadable' });
  });
});

describe('an error of Feast', () => {
  it('about our key gets the code UNAUTHENTICATED, and other errors keep their code', () => {
    equal(errorCode({ message: 'which key?', extensions: { code: 'WRONG_KEY' } }), 'UNAUTHENTICATED');
    equal(errorCode({ message: 'the kitchen burns' }), undefined);
  });
});
