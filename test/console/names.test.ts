/** What people call locations, orders and vendors. */
import { afterEach, describe, expect, it } from 'vitest';
import { needsOf } from '../../console/board/needs-of.ts';
import { findLocation, knownLocations, namesOf, optionsOf, orderName } from '../../console/parts/names.ts';
import type { ListedLocation } from '../../console/wire.ts';
import { NO_ATTENTION } from './no-attention.ts';
import { at, boardOf, NOW, sampleBoardOrder } from './sample-board-order.ts';

const HARBOUR = { locationId: '6f1c2e9a-0001', name: 'Harbour Club' };

describe('the name of a location', () => {
  it('is its id if it has no name', () => {
    expect(namesOf([{ locationId: 'club-1', name: null }]).get('club-1')).toBe('club-1');
    expect(namesOf([{ locationId: 'club-1', name: ' ' }]).get('club-1')).toBe('club-1');
  });

  it('has the end of the id where two have the same name', () => {
    const names = namesOf([HARBOUR, { locationId: '6f1c2e9a-0002', name: 'Harbour Club' }]);
    expect([...names.values()]).toEqual(['Harbour Club (a-0001)', 'Harbour Club (a-0002)']);
  });

  it('has more of the id where the ends are the same too, and counts names as people read them', () => {
    const names = namesOf([
      { locationId: 'north-club-1', name: 'Harbour Club' },
      { locationId: 'south-club-1', name: 'harbour club' },
    ]);
    expect([...names.values()]).toEqual(['Harbour Club (north-club-1)', 'harbour club (south-club-1)']);
  });

  it('is found by its letters in any case, or by its id', () => {
    const names = namesOf([HARBOUR]);
    expect(findLocation(' harbour club ', names)).toBe(HARBOUR.locationId);
    expect(findLocation(HARBOUR.locationId, names)).toBe(HARBOUR.locationId);
  });

  it('is found by a part of it that no other location has', () => {
    const names = namesOf([
      HARBOUR,
      { locationId: 'lake-1', name: 'Lakeside Club' },
      { locationId: 'c', name: 'Club' },
    ]);
    expect(findLocation('harbour', names)).toBe(HARBOUR.locationId);
    expect(findLocation('0001', names)).toBe(HARBOUR.locationId);
    expect(findLocation('side', names)).toBe('lake-1');
    expect(findLocation('e c', names)).toBe('lake-1');
    // A whole name wins over a part of others.
    expect(findLocation('club', names)).toBe('c');
    expect(findLocation('clu', names)).toBeUndefined();
    expect(findLocation('mill', names)).toBeUndefined();
  });
});

it('places are sorted by name, and a chosen one that is not there can be chosen again', () => {
  const nameOf = (id: string): string => ({ a: 'Club 10', b: 'Club 9' })[id] ?? id;
  expect(optionsOf(['a', 'b', 'a'], 'gone', nameOf)).toEqual([
    ['b', 'Club 9'],
    ['a', 'Club 10'],
    ['gone', 'gone'],
  ]);
});

describe('with the names of locations', () => {
  const know = (...locations: { locationId: string; name: string }[]): void => {
    knownLocations.value = locations as ListedLocation[];
  };
  afterEach(() => know());
  const order = { serviceOrderId: 'order-1', callOutCode: 'W269', locationId: HARBOUR.locationId };

  it('an order is its code, or its id, and its location', () => {
    know(HARBOUR);
    expect(orderName(order)).toBe('W269, Harbour Club');
    expect(orderName({ ...order, callOutCode: null, locationId: null })).toBe('order-1');
  });

  it('a part of a name finds the orders and the needs of the location on the board', () => {
    know(HARBOUR);
    const board = boardOf([sampleBoardOrder('order-1', order), sampleBoardOrder('order-2')]);
    const filter = { location: '', integration: '', text: ' harbour' };
    board.narrow(filter);
    expect(board.lists.sent.map(({ id }) => id)).toEqual(['order-1']);
    const silent = { integration: 'acme', lastSeenAt: null, sent: 4, oldestSentAt: at(-30), hasToken: true };
    const attention = {
      ...NO_ATTENTION,
      silent: [
        { ...silent, locationId: HARBOUR.locationId },
        { ...silent, locationId: 'club-1' },
      ],
    };
    const [group] = needsOf(board.lists, attention, filter, NOW);
    expect(group?.needs.map(({ name }) => name)).toEqual(['Harbour Club']);
  });
});
