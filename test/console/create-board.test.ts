import { describe, expect, it } from 'vitest';
import { columnOf } from '../../console/board/column-of.ts';
import { age, due, ended } from '../../console/board/due.ts';
import { createBoard, type Board, type ListName } from '../../console/board/create-board.ts';
import { ticketOf } from '../../console/board/ticket-of.ts';
import type { BoardOrder } from '../../console/wire.ts';
import { NOW, at, boardOf, sampleBoardOrder as order } from './sample-board-order.ts';

const MINUTE_MS = 60_000;

describe('the columns', () => {
  it.each<[string, Partial<BoardOrder>, string]>([
    ['an order that was not fetched yet', { memberState: null, placement: 'waiting' }, 'placed'],
    ['an order that is held', { memberState: 'placed', placement: 'held' }, 'placed'],
    ['an order in doubt', { memberState: 'placed', placement: 'in_doubt' }, 'placed'],
    ['an order at the POS', { memberState: 'sent' }, 'sent'],
    ['a confirmed order', { memberState: 'confirmed' }, 'confirmed'],
    ['an order that is prepared', { memberState: 'preparing' }, 'preparing'],
    ['an order ready for pickup', { memberState: 'ready_for_pickup' }, 'ready'],
    ['an order ready for delivery', { memberState: 'ready_for_delivery' }, 'ready'],
    ['an order on its way', { memberState: 'out_for_delivery' }, 'out'],
    ['a delivered order', { memberState: 'delivered' }, 'done'],
    ['a cancelled order', { memberState: 'cancelled' }, 'done'],
    ['an order that failed before it was fetched', { memberState: null, placement: 'failed' }, 'failed'],
    ['an order that the POS reported as failed', { memberState: 'failed', endedAt: at(-5) }, 'failed'],
    ['an order that ended without a report of the POS', { memberState: 'sent', endedAt: at(-5) }, 'done'],
  ])('$0 is in the column "$2"', (_, some, column) => {
    expect(columnOf(order('order-1', some))).toBe(column);
  });
});

describe('the due time', () => {
  it.each<[string, Partial<BoardOrder>, string, string?]>([
    ['is missing for as soon as possible', { requestedAt: null }, 'nothing'],
    ['is far', { requestedAt: at(75) }, 'due in 75 min', 'plain'],
    ['is very far', { requestedAt: at(200) }, 'due in 3 h', 'plain'],
    ['is near', { requestedAt: at(8.5) }, 'due in 8 min', 'warn'],
    ['is now', { requestedAt: at(-0.5) }, 'due now', 'warn'],
    ["is the POS's estimate", { estimatedAt: at(20), requestedAt: at(-5) }, 'due in 20 min', 'plain'],
    ['is past if the estimate is', { estimatedAt: at(-2), requestedAt: null }, 'overdue 2 min', 'bad'],
    ['is past', { requestedAt: at(-1) }, 'overdue 1 min', 'bad'],
    [
      'was met by a pickup that waits, however long',
      { requestedAt: at(-30), memberState: 'ready_for_pickup', updatedAt: at(-34) },
      '4 min early',
      'good',
    ],
    [
      'is not met by a delivery that is only ready',
      { requestedAt: at(-3), memberState: 'ready_for_delivery', updatedAt: at(-9) },
      'overdue 3 min',
      'bad',
    ],
    [
      'was missed by an order that has ended',
      { requestedAt: at(-30), memberState: 'delivered', endedAt: at(-18) },
      '12 min late',
      'warn',
    ],
    [
      'was met to the minute',
      { requestedAt: at(-30), memberState: 'picked_up', endedAt: at(-30.5) },
      'on time',
      'good',
    ],
    ['is missing for a failed order', { requestedAt: at(-30), memberState: 'failed', endedAt: at(-18) }, 'nothing'],
  ])('$0: the ticket says "$2"', (_, some, words, tone) => {
    const said = due(ticketOf(order('order-1', some), NOW, 0), NOW);
    expect([said?.words ?? 'nothing', said?.tone]).toEqual([words, tone]);
  });

  it.each<[string, string, Partial<BoardOrder>]>([
    ['that was signalled half a minute ago', '30 s', { signalledAt: at(-0.5) }],
    ['that was signalled almost 13 minutes ago', '12 min', { signalledAt: at(-12.9) }],
    ['that a faster clock signalled', '0 s', { signalledAt: at(1) }],
    ['that ended after 35 minutes', '35 min', { signalledAt: at(-90), memberState: 'delivered', endedAt: at(-55) }],
  ])('the age of an order %s is %s', (_what, said, some) => {
    expect(age(ticketOf(order('order-1', some), NOW, 0), NOW)).toBe(said);
  });
});

it('an ended order shows how long ago it ended', () => {
  const refused = order('order-1', { signalledAt: at(-20), placement: 'failed', endedAt: at(-20) });
  expect(ended(ticketOf(refused, NOW, 0), NOW)).toBe('20 min ago');
});

describe('the sequence within a column', () => {
  it('tickets that need a person come first, then late or stuck tickets, then the oldest', () => {
    const board = boardOf([
      order('young', { signalledAt: at(-1) }),
      order('old', { signalledAt: at(-50) }),
      order('late', { signalledAt: at(-10), requestedAt: at(-5) }),
      order('later', { signalledAt: at(-30), requestedAt: at(-12) }),
      order('tried again', { signalledAt: at(-8), placement: 'waiting', problem: 'the POS is down' }),
      order('in doubt', { signalledAt: at(-2), placement: 'in_doubt', needsOperator: true }),
      order('held', { signalledAt: at(-3), needsOperator: true, placement: 'held', problem: 'paused' }),
      order('not due yet', { signalledAt: at(-60), requestedAt: at(30) }),
    ]);
    expect(ids(board, 'sent')).toEqual([
      'held',
      'in doubt',
      'later',
      'tried again',
      'late',
      'not due yet',
      'old',
      'young',
    ]);
    expect(board.late.sent).toBe(2);
  });

  it('failed orders have their own column, and the column of done orders begins with the last one', () => {
    const board = boardOf([
      order('first', { memberState: 'picked_up', endedAt: at(-50) }),
      order('last', { memberState: 'cancelled', endedAt: at(-5) }),
      order('failed', { memberState: 'failed', placement: 'failed', endedAt: at(-100) }),
    ]);
    expect(ids(board, 'done')).toEqual(['last', 'first']);
    expect(ids(board, 'failed')).toEqual(['failed']);
    expect(board.counts).toEqual({ open: 0, done: 2, failed: 1 });
  });

  it('an order becomes late without an event, one minute after its due time', () => {
    const board = boardOf([order('older', { signalledAt: at(-20) }), order('promised', { requestedAt: at(1) })]);
    board.pass(NOW + 2 * MINUTE_MS - 1);
    expect(ids(board, 'sent')).toEqual(['older', 'promised']);
    board.changes();
    board.pass(NOW + 2 * MINUTE_MS);
    expect(ids(board, 'sent')).toEqual(['promised', 'older']);
    expect(board.late.sent).toBe(1);
    expect(board.changes()).toContain('sent');
    board.pass(NOW + 3 * MINUTE_MS);
    expect(board.changes()).toEqual(new Set());
  });

  it.each<[string, number | undefined, Partial<BoardOrder>]>([
    ['that is 15 minutes late', 15, { requestedAt: at(0) }],
    [
      'that a pause holds until it is 15 minutes late',
      15,
      { requestedAt: at(0), placement: 'held', problem: 'paused' },
    ],
    ['that is ready for pickup', undefined, { requestedAt: at(0), memberState: 'ready_for_pickup' }],
    ['of the kitchen without a time', undefined, {}],
    ['that is ready, but not driven', 15, { requestedAt: at(0), memberState: 'ready_for_delivery' }],
  ])('an order $0 needs a person after $1 minutes', (_, after, some) => {
    expect(needed(order('order-1', some))).toEqual(after === undefined ? undefined : { after, trouble: 'late' });
  });

  it.each<[string, number | undefined, Partial<BoardOrder>]>([
    ['that is retried until ten minutes before its time', 10, { requestedAt: at(20), problem: 'failing' }],
    ['for now that is retried for ten minutes', 5, { signalledAt: at(-5), problem: 'failing' }],
    ['in doubt that is retried', 10, { requestedAt: at(20), problem: 'failing', placement: 'in_doubt' }],
    ['that only waits for its turn', undefined, { signalledAt: at(-5) }],
  ])('an order $0 needs a person after $1 minutes, because it is not at the POS', (_, after, some) => {
    const unsent = order('order-1', { placement: 'waiting', memberState: 'placed', ...some });
    expect(needed(unsent)).toEqual(after === undefined ? undefined : { after, trouble: 'unsent' });
  });

  it('a pickup that was ready in time is not late, however long it waits', () => {
    const board = boardOf([
      order('waits', {
        memberState: 'ready_for_pickup',
        requestedAt: at(-20),
        updatedAt: at(-25),
        signalledAt: at(-40),
      }),
      order('to be driven', { memberState: 'ready_for_delivery', requestedAt: at(-20), signalledAt: at(-30) }),
    ]);
    expect(ids(board, 'ready')).toEqual(['to be driven', 'waits']);
    expect(board.late.ready).toBe(1);
  });

  it('orders that ended yesterday leave the board at midnight', () => {
    const done = order('done', { memberState: 'picked_up', endedAt: at(-5) });
    const board = boardOf([done]);
    board.pass(NOW + 5 * 60 * MINUTE_MS);
    expect(ids(board, 'done')).toEqual(['done']);
    const tomorrow = NOW + 7 * 60 * MINUTE_MS;
    board.pass(tomorrow);
    expect(ids(board, 'done')).toEqual([]);
    board.take([done], tomorrow);
    expect(ids(board, 'done')).toEqual([]);
    expect(board.counts).toEqual({ open: 0, done: 0, failed: 0 });
  });

  it('a test order leaves the board at its end, because the person who placed it saw the end', () => {
    const test = 'certify-0123456789abcdef';
    const board = boardOf([order(test), order('failed', { placement: 'failed', endedAt: at(-5) })]);
    expect(ids(board, 'sent')).toEqual([test]);
    board.take([order(test, { placement: 'failed', memberState: 'failed', endedAt: at(0) })], NOW);
    expect([ids(board, 'sent'), ids(board, 'failed')]).toEqual([[], ['failed']]);
    board.take([order(test, { memberState: 'picked_up', endedAt: at(0) })], NOW);
    expect(board.counts).toEqual({ open: 0, done: 0, failed: 1 });
  });

  it('a failed order stays for a day, also after midnight', () => {
    const failed = order('failed', { memberState: 'failed', endedAt: at(-5) });
    const board = boardOf([failed]);
    board.pass(NOW + 23 * 60 * MINUTE_MS);
    expect(ids(board, 'failed')).toEqual(['failed']);
    board.pass(NOW + 24 * 60 * MINUTE_MS);
    expect(ids(board, 'failed')).toEqual([]);
  });
});

describe('a live update', () => {
  it('moves a ticket to the next column, and changes only these two columns', () => {
    const board = boardOf([order('order-1'), order('order-2')]);
    board.changes();
    board.take([order('order-1', { memberState: 'confirmed' })], NOW + 5);
    expect(ids(board, 'sent')).toEqual(['order-2']);
    expect(ids(board, 'confirmed')).toEqual(['order-1']);
    expect(board.lists.confirmed[0]).toMatchObject({ movedAt: NOW + 5 });
    expect([...board.changes()].filter((part) => part in board.lists)).toEqual(['sent', 'confirmed']);
  });

  it('is not a move if the ticket stays in its column', () => {
    const board = boardOf([order('order-1')]);
    board.take([order('order-1', { providerOrderId: '8F2K' })], NOW + 5);
    expect(board.lists.sent).toMatchObject([{ movedAt: 0, order: { providerOrderId: '8F2K' } }]);
  });

  it('removes a solved problem', () => {
    const board = boardOf([
      order('order-1', { memberState: 'placed', needsOperator: true, placement: 'held', problem: 'paused' }),
    ]);
    expect(ids(board, 'held')).toEqual(['order-1']);
    board.take([order('order-1')], NOW);
    expect(ids(board, 'held')).toEqual([]);
  });

  it('a new board replaces the old one only when it is complete', () => {
    const board = boardOf([order('gone'), order('still there')]);
    board.begin();
    board.take([order('still there', { memberState: 'ready_for_pickup' })], NOW);
    board.take([order('new')], NOW);
    expect(ids(board, 'sent')).toEqual(['gone', 'still there']);
    board.complete(NOW);
    expect(ids(board, 'sent')).toEqual(['new']);
    expect(ids(board, 'ready')).toEqual(['still there']);
    expect(board.lists.sent).toMatchObject([{ movedAt: 0 }]);
  });

  it('an incomplete board is discarded when the next one begins', () => {
    const board = createBoard();
    board.begin();
    board.take([order('of the first')], NOW);
    board.begin();
    board.take([order('of the second')], NOW);
    board.complete(NOW);
    expect(ids(board, 'sent')).toEqual(['of the second']);
  });

  it('after thousands of changes every column is sorted', () => {
    const random = numbers(7);
    const some = (id: number): BoardOrder =>
      order(`order-${id}`, {
        signalledAt: at(-Math.floor(random() * 90)),
        requestedAt: random() < 0.5 ? null : at(Math.floor(random() * 60) - 30),
        placement: random() < 0.05 ? 'held' : 'sent',
        needsOperator: random() < 0.02,
        locationId: `club-${id % 40}`,
        ...STATES[Math.floor(random() * STATES.length)],
      });
    const board = boardOf(Array.from({ length: 5_000 }, (_, id) => some(id)));
    board.narrow({ location: '', integration: '', text: 'CLUB-1' });
    const latest = new Map<string, BoardOrder>();
    for (let turn = 0; turn < 200; turn++) {
      const orders = Array.from({ length: 20 }, () => some(Math.floor(random() * 5_500)));
      board.take(orders, NOW + turn * 1_000);
      board.pass(NOW + turn * 1_000);
      for (const each of orders) latest.set(each.serviceOrderId, each);
    }
    const now = NOW + 199_000;
    const all = Object.values(board.lists).flat();
    const anew = boardOf(
      [...new Map(all.map(({ id, order }) => [id, order])).values()].concat([...latest.values()]),
      now,
    );
    anew.narrow({ location: '', integration: '', text: 'club-1' });
    for (const name of Object.keys(board.lists) as ListName[]) expect(ids(board, name)).toEqual(ids(anew, name));
    expect(board.late).toEqual(anew.late);
    expect(all.length).toBeGreaterThan(1_000);
    for (const { id } of board.lists.preparing) {
      expect(board.lists.preparing[board.indexOf('preparing', id)]?.id).toBe(id);
    }
  });
});

describe('the filter', () => {
  const all = [
    order('order-1', { locationId: 'club-1', integration: 'standard', providerOrderId: '8F2K' }),
    order('order-2', { locationId: 'club-2', integration: 'square' }),
    order('order-3', { locationId: null, integration: null, memberState: null, placement: 'waiting' }),
  ];
  it.each([
    ['a location', { location: 'club-2' }, ['order-2']],
    ['an integration', { integration: 'standard' }, ['order-1']],
    ['part of an id', { text: ' ORDER-1' }, ['order-1']],
    ['part of a POS id', { text: '8f2' }, ['order-1']],
    ['part of a location', { text: 'club' }, ['order-1', 'order-2']],
    ['a location and part of a POS id', { location: 'club-2', text: '8f2' }, []],
  ])('finds $2 by $0', (_, filter, found) => {
    const board = boardOf(all);
    board.narrow({ location: '', integration: '', text: '', ...filter });
    expect([...ids(board, 'placed'), ...ids(board, 'sent')]).toEqual(found);
    expect(board.counts.open).toBe(3);
  });

  it('applies to later orders, and can be removed', () => {
    const board = boardOf(all);
    board.narrow({ location: 'club-1', integration: '', text: '' });
    board.take([order('order-4', { locationId: 'club-1' }), order('order-5', { locationId: 'club-2' })], NOW);
    expect(ids(board, 'sent')).toEqual(['order-1', 'order-4']);
    board.narrow({ location: '', integration: '', text: '' });
    expect(ids(board, 'sent')).toEqual(['order-1', 'order-2', 'order-4', 'order-5']);
  });

  it('offers the locations and integrations of the orders on the board', () => {
    const board = boardOf(all);
    expect(board.places()).toEqual({ locations: ['club-1', 'club-2'], integrations: ['square', 'standard'] });
    board.changes();
    board.take([order('order-4', { locationId: 'club-1', integration: 'standard' })], NOW);
    expect(board.changes()).not.toContain('places');
    board.take([order('order-5', { locationId: 'club-9', integration: 'standard' })], NOW);
    expect(board.changes()).toContain('places');
    expect(board.places().locations).toEqual(['club-1', 'club-2', 'club-9']);
  });
});

const STATES: Partial<BoardOrder>[] = [
  { memberState: 'placed' },
  { memberState: 'sent' },
  { memberState: 'preparing' },
  { memberState: 'preparing', fulfillment: 'delivery' },
  { memberState: 'ready_for_pickup', updatedAt: at(-2) },
  { memberState: 'picked_up', endedAt: at(-2) },
  { memberState: 'failed', placement: 'failed', endedAt: at(-3) },
];

/** After how many minutes an order needs a person because of the time, within two hours, and why. */
function needed(one: BoardOrder): { after: number; trouble: string } | undefined {
  const board = boardOf([one]);
  for (let after = 0; after <= 120; after++) {
    board.pass(NOW + after * MINUTE_MS);
    const trouble = (['unsent', 'late'] as const).find((list) => board.lists[list].length > 0);
    if (trouble !== undefined) return { after, trouble };
  }
  return undefined;
}

function ids(board: Board, list: ListName): string[] {
  return board.lists[list].map(({ id }) => id);
}

/** A deterministic random generator. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}
