import type { Purchase } from './map-order.ts';

/** Sample purchases in Feast's format: a pickup in Berlin and a delivery in Tokyo. */
export const purchases: readonly Purchase[] = [
  {
    code: 'B-1001',
    handover: 'TAKEAWAY',
    createdTs: 1_795_282_200,
    cancelledTs: null,
    wantedFor: '2026-11-21 18:30',
    remark: 'Table by the terrace, if there is one',
    restaurant: { id: 17, timeZone: 'Europe/Berlin', country: 'DE' },
    customer: { number: 42, firstName: 'Ada', lastName: 'Lovelace', phone: '030 12345678', mail: 'ada@example.com' },
    address: null,
    positions: [
      {
        count: 2,
        unitPrice: '12.90',
        remark: null,
        product: { sku: 'burger', title: 'Classic Burger', minimumAge: null },
        extras: [{ count: 1, unitPrice: '1.5', product: { sku: 'cheddar', title: 'Extra cheddar' } }],
      },
      {
        count: 1,
        unitPrice: '4.80',
        remark: 'cold, please',
        product: { sku: 'pale-ale', title: 'Pale Ale 0.33 l', minimumAge: 16 },
        extras: [],
      },
    ],
    totals: { goods: '33.60', vat: '5.36', gratuity: '3', courier: null, grand: '36.60' },
  },
  {
    code: 'T-2001',
    handover: 'COURIER',
    createdTs: 1_795_282_260,
    cancelledTs: null,
    wantedFor: null,
    remark: null,
    restaurant: { id: 23, timeZone: 'Asia/Tokyo', country: 'JP' },
    customer: { number: 43, firstName: 'Murasaki', lastName: null, phone: null, mail: null },
    address: { street: 'Jingumae', houseNumber: '1-8-5', zip: '150-0001', town: 'Tokyo', directions: 'Ring twice' },
    positions: [
      {
        count: 1,
        unitPrice: '1290',
        remark: null,
        product: { sku: 'ramen', title: 'Shoyu Ramen', minimumAge: null },
        extras: [],
      },
    ],
    totals: { goods: '1290', vat: '117', gratuity: null, courier: '350', grand: '1640' },
  },
];
