import { afterEach, describe, expect, it } from 'vitest';
import type { Filter } from '../../console/board/create-board.ts';
import { needsOf, type NeedGroup } from '../../console/board/needs-of.ts';
import { aside, bringBack, putAside } from '../../console/board/put-aside.ts';
import { ticketOf, type Ticket } from '../../console/board/ticket-of.ts';
import type { Attention, BoardOrder } from '../../console/wire.ts';
import { sampleBoardOrder } from './sample-board-order.ts';

const AT = '2027-01-31T18:00:00.000Z';
const NOW = Date.parse(AT);
const HOUR_MS = 3_600_000;
const NO_FILTER: Filter = { location: '', integration: '', text: '' };
const NOTHING = { in_doubt: [], held: [], failed: [], left_out: [] };
const ATTENTION: Attention = {
  conflicts: [
    {
      serviceOrderId: 'order-9',
      callOutCode: null,
      locationId: 'club-1',
      status: 'cancelled',
      recordedAt: AT,
      webhookId: 'webhook-1',
    },
  ],
  cancelByPhone: [],
  cancelByPhoneTotal: 0,
  changed: [],
  dropped: [
    {
      locationId: 'club 2',
      integration: 'square',
      count: 1_000,
      lastReceivedAt: AT,
      lastReason: 'wrong signature',
      lastCause: null,
    },
    { locationId: 'club-1', integration: 'standard', count: 1, lastReceivedAt: AT, lastReason: null, lastCause: null },
  ],
  silent: [{ locationId: 'club-3', integration: null, lastSeenAt: null, sent: 3, oldestSentAt: AT }],
  unnotified: null,
  cases: [],
};

describe('what needs a person', () => {
  it('is empty without needs', () => {
    expect(needsOf(NOTHING, undefined, NO_FILTER, never)).toEqual([]);
    expect(needsOf(NOTHING, { ...ATTENTION, conflicts: [], dropped: [], silent: [] }, NO_FILTER, never)).toEqual([]);
  });

  it('is grouped, the worst first, each with a link to its page', () => {
    const lists = {
      in_doubt: [ticket('order/1', { needsOperator: true, placement: 'in_doubt', problem: 'no answer' })],
      held: [ticket('order-2', { placement: 'held', problem: 'paused' })],
      failed: [ticket('order-3', { placement: 'failed', locationId: null, problem: 'no such order' })],
      left_out: [],
    };
    const groups = needsOf(lists, ATTENTION, NO_FILTER, never);
    expect(groups.map(({ title, count, needs }) => [title, count, ...needs.map(({ href }) => href)])).toEqual([
      ['In doubt', 1, '/console/orders/order%2F1'],
      ['Conflicts', 1, '/console/orders/order-9'],
      ['Failed today', 1, '/console/orders/order-3'],
      ['Held', 1, '/console/orders/order-2'],
      ['Silent locations', 1, '/console/locations/club-3'],
      [
        'Dropped webhooks',
        1_001,
        '/console/webhooks?outcome=dropped&location=club+2',
        '/console/webhooks?outcome=dropped&location=club-1',
      ],
    ]);
    expect(groups.flatMap(({ needs }) => needs.map(({ detail }) => detail))).toEqual([
      'club-1: no answer',
      'club-1: the POS reported cancelled',
      'no such order. The member was not notified.',
      'club-1: paused',
      '3 tickets sent, and the POS has sent nothing since',
      '1,000 webhooks of square: wrong signature',
      '1 webhook of standard',
    ]);
  });

  it('begins with members who are not being notified, for any number of orders', () => {
    const unnotified = { messages: 60, orders: 23, oldestAppliedAt: AT, serviceOrderId: 'order-7', callOutCode: null };
    const groups = needsOf(NOTHING, { ...ATTENTION, unnotified }, { ...NO_FILTER, location: 'elsewhere' }, never);
    expect(groups).toMatchObject([
      {
        title: 'Members are not being notified',
        count: 23,
        needs: [{ name: '60 updates of 23 orders wait', href: '/console/orders/order-7', since: NOW }],
      },
    ]);
  });

  it('lists cancellations by phone and changed orders, with location and ticket', () => {
    const cancel = {
      callOutCode: null,
      locationId: 'club-1',
      integration: 'toast',
      providerOrderId: '8F2K',
      requestedAt: AT,
    };
    const attention: Attention = {
      ...ATTENTION,
      conflicts: [],
      cancelByPhone: [
        { ...cancel, serviceOrderId: 'order-5' },
        { ...cancel, serviceOrderId: 'order-6', providerOrderId: null },
      ],
      cancelByPhoneTotal: 500,
      changed: [
        {
          serviceOrderId: 'order-8',
          callOutCode: null,
          locationId: 'club-1',
          integration: null,
          paths: ['notes', 'items.0.name'],
          seenAt: AT,
        },
      ],
    };
    const groups = needsOf(NOTHING, attention, { ...NO_FILTER, location: 'club-1' }, never).slice(0, 2);
    expect(groups[0]?.count).toBe(500);
    expect(groups.map(({ title, needs }) => [title, ...needs.map(({ detail }) => detail)])).toEqual([
      ['Cancel by phone', 'Cancel it by phone: club-1, ticket 8F2K', 'Cancel it by phone: club-1, ticket id unknown'],
      ['Changed after it was sent', 'club-1: notes; item 1, name'],
    ]);
    expect(needsOf(NOTHING, attention, { ...NO_FILTER, text: 'order-6' }, never)).toMatchObject([{ count: 1 }]);
    expect(groups[0]?.aside, 'it is not over before an operator entered the answer').toBeUndefined();
  });

  it('also has the location and the reason in a few words', () => {
    const held = [ticket('a', { placement: 'held', problem: 'long', cause: { code: 'location_paused' } })];
    const [group] = needsOf({ ...NOTHING, held }, undefined, NO_FILTER, never);
    expect(group?.needs[0]?.brief).toEqual(['club-1', 'location paused']);
  });

  it('names the first step if the cause is known', () => {
    const paused = { problem: 'the location is paused', cause: { code: 'location_paused' } as const };
    const held = ['a', 'b'].map((id) => ticket(id, { placement: 'held', ...paused }));
    const failed = [ticket('c', { placement: 'failed', problem: 'x', cause: { code: 'of_a_newer_version' } })];
    const details = needsOf({ ...NOTHING, held, failed }, undefined, NO_FILTER, never).flatMap(({ needs }) =>
      needs.map(({ detail }) => detail),
    );
    expect(details).toEqual([
      'club-1: x. The member was not notified.',
      expect.stringMatching(/^2 orders: the location is paused\. Resume the location/),
    ]);
  });

  it('held orders of one location are one need', () => {
    const held = ['a', 'b', 'c'].map((id) => ticket(id, { placement: 'held', problem: 'paused' }));
    const [group] = needsOf({ ...NOTHING, held }, undefined, NO_FILTER, never);
    expect(group).toMatchObject({
      count: 3,
      needs: [{ name: 'club-1', detail: '3 orders: paused', href: '/console/orders?state=held&location=club-1' }],
    });
  });

  it.each<[string, Partial<Filter>, string[]]>([
    ['a location', { location: 'club-1' }, ['order-9', 'club-1']],
    ['an integration', { integration: 'square' }, ['order-9', 'club-3', 'club 2']],
    ['a text', { text: 'CLUB-3 ' }, ['club-3']],
    ["an order's id", { text: 'order-9' }, ['order-9']],
  ])('is narrowed by %s', (_, filter, names) => {
    expect(namesOf(needsOf(NOTHING, ATTENTION, { ...NO_FILTER, ...filter }, never))).toEqual(names);
  });
});

describe('putting aside', () => {
  afterEach(() => bringBack(Object.keys(aside.value)));
  const failed = [ticket('order-1', { placement: 'failed' }), ticket('order-2', { placement: 'failed' })];
  const isPutAside = (key: string): boolean => key in aside.value;

  it('a need that was put aside is not counted, and can be brought back', () => {
    putAside(['failed:order-1']);
    const [group] = needsOf({ ...NOTHING, failed }, undefined, NO_FILTER, isPutAside);
    expect(group).toMatchObject({ count: 1, needs: [{ name: 'order-2' }], aside: [{ name: 'order-1' }] });
    bringBack(['failed:order-1']);
    expect(namesOf(needsOf({ ...NOTHING, failed }, undefined, NO_FILTER, isPutAside))).toEqual(['order-1', 'order-2']);
  });

  it('a new conflict of the same order is shown again', () => {
    const [group] = needsOf(NOTHING, ATTENTION, { ...NO_FILTER, text: 'order-9' }, isPutAside);
    putAside((group as NeedGroup).needs.map(({ key }) => key));
    const conflicts = ATTENTION.conflicts.map((each) => ({ ...each, webhookId: 'webhook-2' }));
    const again = { ...ATTENTION, conflicts: [...ATTENTION.conflicts, ...conflicts], dropped: [], silent: [] };
    expect(needsOf(NOTHING, again, NO_FILTER, isPutAside)).toMatchObject([{ count: 1, aside: [{}] }]);
  });

  it('is forgotten when the need can no longer be on the board', () => {
    putAside(['failed:order-1'], NOW);
    putAside(['failed:order-2'], NOW + 49 * HOUR_MS);
    expect(Object.keys(aside.value)).toEqual(['failed:order-2']);
  });
});

function ticket(serviceOrderId: string, some: Partial<BoardOrder>): Ticket {
  const endedAt = some.placement === 'failed' ? AT : null;
  return ticketOf(sampleBoardOrder(serviceOrderId, { signalledAt: AT, memberState: null, endedAt, ...some }), NOW, 0);
}

function namesOf(groups: NeedGroup[]): string[] {
  return groups.flatMap(({ needs }) => needs.map(({ name }) => name));
}

function never(): boolean {
  return false;
}
