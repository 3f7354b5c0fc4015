import { describe, expect, it } from 'vitest';
import { MEMBER_STATES, PLACEMENT_STATES, ordersFilter } from '../../console/orders/orders-filter.ts';
import { readOn } from '../../console/orders/read-on.ts';
import { showMoney } from '../../console/parts/show-money.ts';
import { fromLocalTime, toLocalTime } from '../../console/parts/local-time.ts';
import type { ListedOrders } from '../../console/wire.ts';
import * as claimed from '../../src/core/domain/placement.ts';
import * as life from '../../src/core/domain/lifecycle.ts';
import { OrdersQuery } from '../../src/operators/requests.ts';

describe('the filter of a list of orders', () => {
  it('has the parameters that the service accepts', () => {
    const query = {
      location: 'club-1',
      integration: 'standard',
      state: 'held',
      memberState: 'ready_for_pickup',
      open: 'true',
      needs: 'operator',
      since: '2027-01-31T18:00:00Z',
      until: fromLocalTime('2027-02-01T18:00'),
    };
    expect(ordersFilter(query)).toEqual(query);
    expect(OrdersQuery.safeParse(ordersFilter(query)).success).toBe(true);
    expect(OrdersQuery.parse(ordersFilter({ needs: 'late' }))).toMatchObject({ needs: 'late' });
  });

  it('ignores parameters that are empty, unknown or invalid', () => {
    const query = {
      location: '  ',
      state: 'lost',
      memberState: 'eaten',
      open: 'maybe',
      needs: 'help',
      since: 'now',
      x: 'y',
    };
    expect(ordersFilter(query)).toEqual({});
    expect(ordersFilter({ since: '2027-01-31', until: '2027-02-30T25:00:00Z' })).toEqual({});
    expect(ordersFilter({})).toEqual({});
    expect(ordersFilter({ location: ' club-1 ' })).toEqual({ location: 'club-1' });
  });

  it('offers every placement state and every member state', () => {
    expect(PLACEMENT_STATES.toSorted()).toEqual(claimed.PLACEMENT_STATES.toSorted());
    expect(MEMBER_STATES.toSorted()).toEqual(life.MEMBER_STATES.toSorted());
  });
});

describe('reading more of a list', () => {
  const row = { serviceOrderId: 'order-1' } as ListedOrders['orders'][number];
  const pages = (...all: ListedOrders[]) => {
    const asked: (string | undefined)[] = [];
    const read = async (cursor: string | undefined): Promise<ListedOrders> => {
      asked.push(cursor);
      return all[asked.length - 1] ?? { orders: [], next: `after-${asked.length}` };
    };
    return { asked, read };
  };

  it('skips empty pages until it finds an order', async () => {
    const { asked, read } = pages({ orders: [], next: 'a' }, { orders: [], next: 'b' }, { orders: [row], next: 'c' });
    expect(await readOn(read, 'start')).toEqual({ orders: [row], next: 'c' });
    expect(asked).toEqual(['start', 'a', 'b']);
  });

  it('stops at the end of the list', async () => {
    const { asked, read } = pages({ orders: [], next: 'a' }, { orders: [], next: null });
    expect(await readOn(read, undefined)).toEqual({ orders: [], next: null });
    expect(asked).toEqual([undefined, 'a']);
  });

  it('stops after five empty pages, so that the reader decides whether to continue', async () => {
    const { asked, read } = pages();
    expect((await readOn(read, undefined)).next).toBe('after-5');
    expect(asked.length).toBe(5);
  });
});

describe('a sum of money', () => {
  it.each([
    [1290, 'EUR', '€12.90'],
    [5, 'EUR', '€0.05'],
    [1290, 'JPY', '¥1,290'],
    [1290, 'KWD', 'KWD 1.290'],
    [1290, 'IQD', 'IQD 1.290'],
    [9_007_199_254_740_991, 'EUR', '€90,071,992,547,409.91'],
  ])('of %i minor units of %s is shown as %s', (minorUnits, currency, shown) => {
    expect(showMoney(minorUnits, currency, 'en').replace('\u00a0', ' ')).toBe(shown);
  });
});

describe('a time in a filter', () => {
  it('is shown in the time zone of the reader, and is the same instant in the address', () => {
    const local = '2027-01-31T18:05';
    expect(toLocalTime(fromLocalTime(local))).toBe(local);
    expect(fromLocalTime(local)).toBe(new Date(local).toISOString().replace('.000', ''));
    expect(toLocalTime('2027-01-31T18:05:59.999999+00:00')).toMatch(/^2027-0[12]-\d\dT\d\d:05$/);
  });

  it('is empty if no time was given', () => {
    expect([toLocalTime(''), toLocalTime('soon'), fromLocalTime('')]).toEqual(['', '', '']);
  });
});
