import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { NeedsOperator } from '../../../src/core/domain/errors.ts';
import { CanonicalOrder, TEXT_MAX } from '../../../src/core/domain/order.ts';
import { discountsOf, sumItems } from '../../../src/core/domain/money.ts';
import {
  readCanonicalOrder,
  readOrderOrCancel,
  type ReadOrder,
} from '../../../src/core/domain/read-canonical-order.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';

type Fields = Record<string, unknown>;

/** A delivery with one field replaced. */
function withField(path: string, value: unknown, type: 'pickup' | 'delivery' = 'delivery'): Fields {
  const order: Fields = structuredClone(
    sampleOrder({ serviceOrderId: 'order-1', placedAt: '2027-01-31T18:00:00Z', type }),
  );
  const names = path.split('.');
  let parent = order;
  for (const name of names.slice(0, -1)) parent = parent[name] as Fields;
  parent[names.at(-1) ?? ''] = value;
  return order;
}

function read(order: unknown, country?: string): ReadOrder {
  return readCanonicalOrder(order, { serviceOrderId: 'order-1', country });
}

/** What is held, as data. */
function issuesOf(order: unknown): object[] {
  try {
    read(order);
  } catch (error) {
    expect(error).toBeInstanceOf(NeedsOperator);
    const cause = (error as Error).cause as { code: string; issues: object[] };
    expect(cause.code).toBe('order_unreadable');
    return cause.issues;
  }
  throw new Error('it was read');
}

describe('a cancelled order', () => {
  const about = { serviceOrderId: 'order-1' };
  const cancelledAt = '2027-01-31T18:05:00Z';

  it.each([
    ['with quantities of 0', { ...withField('items.0.quantity', 0), cancelledAt, cancelReason: 'Late' }, 'Late'],
    ['of nothing but its id and time', { serviceOrderId: 'order-1', cancelledAt, items: null }, undefined],
    ['with an unusable reason', { serviceOrderId: 'order-1', cancelledAt, cancelReason: 7 }, undefined],
  ])('%s is a cancel, though it cannot be read', (_what, order, cancelReason) => {
    expect(readOrderOrCancel(order, about)).toEqual({ ...about, cancelledAt, cancelReason });
  });

  it('that can be read is an order', () => {
    expect(readOrderOrCancel(withField('cancelledAt', cancelledAt), about)).toMatchObject({ order: { cancelledAt } });
  });

  it.each([
    ['another order', { serviceOrderId: 'order-2', cancelledAt }],
    ['no order', { cancelledAt }],
    ['no valid time', { serviceOrderId: 'order-1', cancelledAt: '31.1.2027' }],
    ['no time', { serviceOrderId: 'order-1', cancelledAt: null, cancelReason: 'Late' }],
  ])('that names %s is held as any order that cannot be read', (_what, order) => {
    expect(() => readOrderOrCancel(order, about)).toThrow(NeedsOperator);
  });

  it('whose time is wrong is held by the name of this field', () => {
    expect(issuesOf(withField('cancelledAt', '31.1.2027'))).toMatchObject([{ path: 'cancelledAt' }]);
  });
});

describe('an unusable optional field', () => {
  it.each([
    ['member.phone', 'none', 'phone_unusable'],
    ['member.phone', 49_151, 'phone_unusable'],
    ['member.email', 'none', 'email_unusable'],
    ['member.email', ['ada@example.com'], 'email_unusable'],
    ['member.email', `ada@${'x'.repeat(TEXT_MAX)}`, 'email_unusable'],
    ['fulfillment.destination.latitude', '52.5', 'coordinates_unusable'],
    ['fulfillment.destination.longitude', 181, 'coordinates_unusable'],
    ['fulfillment.destination.city', { name: 'Berlin' }, 'address_unusable'],
    ['fulfillment.destination.country', 'Germany', 'address_unusable'],
  ])('is left out and reported by code and path: %s %j', (path, value, code) => {
    const { order, leftOut } = read(withField(path, value));
    expect(leftOut).toEqual([{ code, path }]);
    expect(order).toEqual(JSON.parse(JSON.stringify(CanonicalOrder.parse(withField(path, undefined)))));
  });

  it('is left out with the whole address if the order is a pickup', () => {
    const { order, leftOut } = read(withField('fulfillment.destination', { city: 3, latitude: 'x' }, 'pickup'));
    expect(order.fulfillment).toEqual({ type: 'pickup' });
    expect(leftOut).toContainEqual({ code: 'address_unusable', path: 'fulfillment.destination' });
  });

  it.each(['notes', 'items.0.notes', 'member.name', 'fulfillment.destination.instructions'])(
    'is cut at its end if its text is too long: %s',
    (path) => {
      const { order, leftOut } = read(withField(path, `no nuts ${'🎂'.repeat(TEXT_MAX)}`));
      expect(leftOut).toEqual([{ code: 'text_too_long', path }]);
      expect(JSON.stringify(order)).toContain('no nuts 🎂');
    },
  );

  it('that is unknown is reported once, without a name that may be member data', () => {
    const order = withField('items.0.sku', 'a');
    (order['items'] as Fields[]).forEach((item) => (item['sku'] = 'x'));
    Object.assign(order, { __typename: 'Order', 'ada@example.com': true, extra: null });
    expect(read(order).leftOut).toEqual([
      { code: 'field_unknown', path: 'items.*.sku' },
      { code: 'field_unknown', path: '.?' },
    ]);
  });

  it('is left out without a report if it is blank or null', () => {
    const order = withField('member', { id: 'm', name: 'Ada', phone: ' ', email: '' });
    const destination = { line1: 'Lindenstraße 14', line2: '', city: '\0', region: null, instructions: '  ' };
    Object.assign(order, { notes: '', fulfillment: { type: 'delivery', destination } });
    (order['items'] as Fields[]).forEach((item) => (item['notes'] = ' \n'));
    const { order: canonical, leftOut } = read(order);
    expect(canonical.member).toEqual({ id: 'm', name: 'Ada' });
    expect(canonical.fulfillment).toEqual({ type: 'delivery', destination: { line1: 'Lindenstraße 14' } });
    expect(canonical).not.toHaveProperty('notes');
    expect(canonical.items.filter((item) => 'notes' in item)).toEqual([]);
    expect(leftOut).toEqual([]);
    const blank = { line1: '', city: ' ', country: null };
    const pickup = read(withField('fulfillment.destination', blank, 'pickup'));
    expect(pickup).toMatchObject({ order: { fulfillment: { type: 'pickup' } }, leftOut: [] });
    expect(pickup.order.fulfillment).not.toHaveProperty('destination');
  });
});

describe('a telephone number', () => {
  const destination = (country: unknown): Fields => ({ line1: 'Lindenstraße 14', country });

  it.each<[string, Fields | undefined, string | undefined, string]>([
    ['0151 23456789', destination('DE'), undefined, '+4915123456789'],
    ['(0151) 234-567-89', destination('de'), 'US', '+4915123456789'],
    ['0043 1 534 530', destination('DE'), undefined, '+431534530'],
    ['0151 23456789', destination('Germany'), 'DE', '+4915123456789'],
    ['(415) 555-2671', undefined, 'US', '+14155552671'],
    ['+49 151 / 234 567 89', undefined, undefined, '+4915123456789'],
  ])('%s is read with the country of the destination, or of the location', (phone, to, country, expected) => {
    const order = withField('member.phone', phone, to === undefined ? 'pickup' : 'delivery');
    if (to !== undefined) order['fulfillment'] = { type: 'delivery', destination: to };
    const { order: found, leftOut } = read(order, country);
    expect(found.member.phone).toBe(expected);
    expect(leftOut.map(({ path }) => path)).toEqual(
      to?.['country'] === 'Germany' ? [`fulfillment.destination.country`] : [],
    );
  });

  it.each([
    ['0151 23456789', undefined],
    ['0151 23456789', 'Germany'],
    ['0151 23456789', 'XX'],
    ['12', 'DE'],
  ])('%s with the country %s is ambiguous, and left out', (phone, country) => {
    const { order, leftOut } = read(withField('member.phone', phone, 'pickup'), country);
    expect(order.member).not.toHaveProperty('phone');
    expect(leftOut).toEqual([{ code: 'phone_unusable', path: 'member.phone' }]);
  });
});

describe('an unusable required field', () => {
  it.each([
    ['serviceOrderId', 'order-2', { received: 'string', says: 'is not the id that was requested' }],
    ['locationId', '', { received: 'string', says: 'is empty' }],
    ['member.name', undefined, { received: 'missing', expected: 'string' }],
    ['fulfillment.type', 'PICKUP', { received: 'string', says: 'is neither pickup nor delivery' }],
    ['fulfillment.requestedAt', 'tonight', { received: 'string', says: expect.stringContaining('RFC 3339') }],
    ['fulfillment.destination.line1', 4, { received: 'number', expected: 'string' }],
    ['items', [], { received: 'array', says: 'is empty' }],
    ['items.0.quantity', '2', { received: 'string', expected: 'number' }],
    ['items.0.unitPrice', 12.9, { received: 'number', expected: 'int' }],
    ['items.0.modifiers', 'no onions', { received: 'string', expected: 'array' }],
    ['items.0.ageRestricted', 'yes', { received: 'string', expected: 'boolean' }],
    ['items.0.notes', ['no nuts'], { received: 'array', expected: 'string' }],
    ['notes', { text: 'no nuts' }, { received: 'object', expected: 'string' }],
    ['money.total', '47.00', { received: 'string', expected: 'number' }],
    ['money.total', Number.NaN, { received: 'other', expected: 'number' }],
    ['money.currency', 'eur', { received: 'string', says: 'is not an ISO 4217 code such as EUR' }],
    ['placedAt', 1_798_000_000, { received: 'number', expected: 'string' }],
  ])('holds the order and is reported with path, type and what is required: %s %j', (path, value, about) => {
    expect(issuesOf(withField(path, value))).toEqual([{ path, ...about }]);
  });

  it.each(
    ['', ' ', '\t\u00a0\n', '\0'].flatMap((blank) =>
      ['member.name', 'items.0.name', 'items.0.modifiers.0.name', 'fulfillment.destination.line1'].map((path) => [
        path,
        blank,
      ]),
    ),
  )('holds the order if it is blank: %s %j', (path, blank) => {
    expect(issuesOf(withField(path, blank))).toEqual([
      { path, received: 'string', says: 'is blank; text is required' },
    ]);
  });

  it.each([
    'serviceOrderId',
    'locationId',
    'member.id',
    'items.0.serviceItemId',
    'items.0.modifiers.0.serviceModifierId',
  ])('holds the order if it is a blank id: %s', (path) => {
    expect(issuesOf(withField(path, ' '))).toEqual([{ path, received: 'string', says: 'is blank; an id is required' }]);
  });

  it('is reported without its value, and without other unusable fields that are optional', () => {
    const order = withField('member.phone', 'Ada 030');
    Object.assign(order['money'] as Fields, { total: 'Ada 47' });
    expect(issuesOf(order)).toEqual([{ path: 'money.total', received: 'string', expected: 'number' }]);
    expect(() => read(order)).toThrow('the order cannot be read: money.total is a string; a number is required');
  });

  it.each([[3], ['order'], [[]], [true]])(
    'is reported with an empty path if the whole order is no object: %j',
    (value) => {
      expect(issuesOf(value)).toEqual([{ path: '', received: expect.any(String), expected: 'object' }]);
    },
  );
});

describe('discounts', () => {
  const { money } = sampleOrder();
  const named = (...amounts: unknown[]) => amounts.map((amount) => ({ name: 'Club', amount }));
  const withDiscounts = (discount: unknown, discounts?: unknown): Fields => {
    return { ...withField('money', { ...money, discount }), ...(discounts !== undefined && { discounts }) };
  };

  it.each([
    ['a sum and its amounts', withDiscounts(500, named(300, 200)), 500],
    ['a sum only', withDiscounts(500), 500],
    ['amounts without a sum', withDiscounts(undefined, named(300, 0, 200)), 500],
    ['amounts, and null for the sum', withDiscounts(null, named(300)), 300],
    ['an empty list and no sum', withDiscounts(undefined, []), undefined],
    ['a sum, and an empty list', withDiscounts(500, []), 500],
    ['a sum as high as the subtotal', withDiscounts(money.subtotal), money.subtotal],
    ['no discounts', withDiscounts(undefined), undefined],
  ])('are read with their sum: %s', (_name, order, sum) => {
    const { order: read_, leftOut } = read(order);
    expect([read_.money.discount, leftOut]).toEqual([sum, []]);
  });

  it.each([
    ['an empty list', []],
    ['no name', [{ amount: 500 }]],
    ['null for a name', [{ name: null, amount: 500 }]],
    ['a blank name', [{ name: ' ', amount: 500 }]],
  ])('get the name "Discount" on the ticket if the platform sends %s', (_name, discounts) => {
    expect(discountsOf(read(withDiscounts(500, discounts)).order)).toEqual([{ name: 'Discount', amount: 500 }]);
    const { order } = read(withDiscounts(500));
    expect(discountsOf({ ...order, discounts: [] })).toHaveLength(1);
  });

  it.each([
    [
      'a sum of more than the subtotal',
      withDiscounts(money.subtotal + 1),
      'money.discount',
      'is more than the subtotal: perhaps a part of it is a discount of the fee. Leave this part out',
    ],
    [
      'amounts of more than the subtotal',
      withDiscounts(undefined, named(money.subtotal, 1)),
      'money.discount',
      'is more than the subtotal: perhaps a part of it is a discount of the fee. Leave this part out',
    ],
    [
      'amounts of less than the sum',
      withDiscounts(500, named(300, 199)),
      'discounts',
      'do not add up to money.discount',
    ],
    ['amounts of more than the sum', withDiscounts(500, named(501)), 'discounts', 'do not add up to money.discount'],
  ])('hold the order if they have %s', (_name, order, path, says) => {
    expect(issuesOf(order)).toMatchObject([{ path, says }]);
  });

  it.each([
    ['a sum below zero', withDiscounts(-1), 'money.discount'],
    ['a decimal sum', withDiscounts(4.99), 'money.discount'],
    ['an amount below zero', withDiscounts(undefined, named(500, -100)), 'discounts.1.amount'],
    ['an amount that is a text', withDiscounts(undefined, named('500')), 'discounts.0.amount'],
    ['null as an amount', withDiscounts(undefined, named(null)), 'discounts.0.amount'],
    ['a name that is a number', withDiscounts(500, [{ name: 7, amount: 500 }]), 'discounts.0.name'],
    ['an object instead of a list', withDiscounts(500, { name: 'Club', amount: 500 }), 'discounts'],
    ['a list with null', withDiscounts(500, [null]), 'discounts'],
  ])('hold the order and report the path of the wrong field if they have %s', (_name, order, path) => {
    const [issue] = issuesOf(order) as { path: string }[];
    expect(issue?.path).toContain(path);
  });
});

describe.each([
  ['fees', 'fee', 'Fee'],
  ['taxes', 'tax', 'Tax'],
] as const)('%s', (list, sum, name) => {
  const { money } = sampleOrder();
  const withParts = (given: unknown, parts?: unknown): Fields => ({
    ...withField('money', { ...money, [sum]: given }),
    ...(parts !== undefined && { [list]: parts }),
  });
  const two = [
    { name: 'Bag', amount: 20 },
    { name: ' ', amount: 330 },
  ];

  it.each([
    ['their sum', withParts(350, two), 350],
    ['no sum', withParts(undefined, two), 350],
    ['null for their sum', withParts(null, two), 350],
    ['no parts', withParts(350), 350],
    ['an empty list and a sum', withParts(350, []), 350],
    ['an empty list and no sum', withParts(undefined, []), 0],
  ])(`add up to money.${sum}: %s`, (_name, order, expected) => {
    const { order: found, leftOut } = read(order);
    expect([found.money[sum], leftOut]).toEqual([expected, []]);
    if (found[list] !== undefined) expect(found[list].map((each) => each.name)).toEqual(['Bag', name]);
  });

  it.each([
    ['amounts of less than the sum', withParts(351, two), list, `do not add up to money.${sum}`],
    ['neither parts nor a sum', withParts(undefined), `money.${sum}`, undefined],
    ['a negative amount', withParts(undefined, [{ name: 'Bag', amount: -1 }]), `${list}.0.amount`, 'is below 0'],
  ])('hold the order if they have %s', (_name, order, path, says) => {
    expect(issuesOf(order)).toContainEqual(expect.objectContaining({ path, ...(says !== undefined && { says }) }));
  });
});

it('discounts, fees and taxes that do not add up are named together', () => {
  const order = withField('fees', [{ name: 'Bag', amount: 1 }]);
  order['taxes'] = [{ name: 'VAT', amount: 1, rate: 19 }];
  expect(issuesOf(order)).toMatchObject([{ path: 'fees' }, { path: 'taxes' }]);
});

it('modifiers may be nested in five levels, and a sixth level makes the order unreadable', () => {
  const nested = (levels: number): Fields => {
    const each = { serviceModifierId: 'dip', name: 'Dip', quantity: 2, unitPrice: 50 };
    return levels === 1 ? { ...each, modifiers: null } : { ...each, modifiers: [nested(levels - 1)] };
  };
  const { order, leftOut } = read(withField('items.0.modifiers', [nested(5)]));
  expect(leftOut).toEqual([]);
  expect(sumItems(order.items.slice(0, 1)), 'two burgers, and the dips of each').toBe(
    2 * (1290 + 50 * (2 + 4 + 8 + 16 + 32)),
  );
  expect(issuesOf(withField('items.0.modifiers', [nested(6)]))).toMatchObject([
    { path: expect.stringMatching(/^items\.0(\.modifiers\.0){5}\.modifiers$/) as string, says: 'are nested too deep' },
  ]);
});

it('every optional field that is unusable is left out, except the fields listed here, which hold the order', () => {
  const optional: string[] = [];
  const walk = (schema: Fields, path: string): void => {
    for (const each of [schema, ...((schema['oneOf'] ?? []) as Fields[])]) {
      if (each['items'] !== undefined) walk(each['items'] as Fields, `${path}.0`);
      for (const [name, field] of Object.entries((each['properties'] ?? {}) as Record<string, Fields>)) {
        const at = path === '' ? name : `${path}.${name}`;
        if (!((each['required'] ?? []) as string[]).includes(name)) optional.push(at);
        // One level of modifiers is as the next.
        if (name !== 'modifiers' || !path.includes('modifiers')) walk(field, at);
      }
    }
  };
  walk(z.toJSONSchema(CanonicalOrder, { io: 'input' }), '');
  const spared = [...new Set(optional)].filter((path) => {
    const type = path === 'fulfillment.destination' ? 'pickup' : 'delivery';
    try {
      return read(withField(path, 7n, type)).leftOut.length > 0;
    } catch {
      return false;
    }
  });
  expect([...new Set(optional)].filter((path) => !spared.includes(path))).toEqual([
    'fulfillment.requestedAt',
    'items.0.unitPrice',
    'items.0.notes',
    'items.0.ageRestricted',
    'items.0.modifiers',
    'items.0.modifiers.0.unitPrice',
    'items.0.modifiers.0.modifiers',
    'money.discount',
    'money.pricesIncludeTax',
    'discounts',
    'discounts.0.name',
    'fees',
    'fees.0.name',
    'taxes',
    'taxes.0.name',
    'taxes.0.rate',
    'notes',
    'cancelledAt',
    'cancelReason',
  ]);
});
