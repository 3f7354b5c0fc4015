import { describe, expect, it } from 'vitest';
import { NO_ORDERS, type Filter } from '../../console/board/create-board.ts';
import { needsOf, type NeedGroup } from '../../console/board/needs-of.ts';
import { ticketOf, type Ticket } from '../../console/board/ticket-of.ts';
import type { Attention, BoardCase, BoardOrder } from '../../console/wire.ts';
import { NO_ATTENTION } from './no-attention.ts';
import { sampleBoardOrder } from './sample-board-order.ts';

const AT = '2027-01-31T18:00:00.000Z';
const NOW = Date.parse(AT);
const NO_CASE: BoardCase = {
  kind: 'order',
  id: '',
  locationId: 'club-1',
  holder: null,
  givenBy: null,
  takenAt: null,
  snoozedUntil: null,
  snoozedAt: null,
  closedAt: null,
};
const HELD = { needsOperator: true, placement: 'held' } as const;
const IN_DOUBT = { needsOperator: true, placement: 'in_doubt' } as const;
const ATTENTION: Attention = {
  ...NO_ATTENTION,
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
  dropped: [
    {
      locationId: 'club 2',
      integration: 'square',
      count: 1_000,
      firstReceivedAt: '2027-01-31T17:00:00.000Z',
      lastReceivedAt: AT,
      lastReason: 'wrong signature',
      lastCause: null,
    },
    {
      locationId: 'club-1',
      integration: 'standard',
      count: 1,
      firstReceivedAt: AT,
      lastReceivedAt: AT,
      lastReason: null,
      lastCause: null,
    },
  ],
  unreachable: [{ locationId: 'club-4', integration: 'acme', since: AT }],
  silent: [{ locationId: 'club-3', integration: null, lastSeenAt: null, sent: 3, oldestSentAt: AT, hasToken: true }],
};

type Lists = Parameters<typeof needsOf>[0];
function needs(some: Partial<Lists>, attention?: Attention, filter: Partial<Filter> = {}, now = NOW): NeedGroup[] {
  return needsOf({ ...NO_ORDERS, ...some }, attention, { location: '', integration: '', text: '', ...filter }, now);
}

describe('the list of what needs a person', () => {
  it('is empty if nothing needs a person', () => {
    expect(needs({})).toEqual([]);
    expect(needs({}, NO_ATTENTION)).toEqual([]);
  });

  it('has groups from the worst to the mildest, and each entry has a link', () => {
    const lists = {
      in_doubt: [ticket('order/1', { ...IN_DOUBT, problem: 'no answer' })],
      held: [ticket('order-2', { ...HELD, problem: 'paused' })],
      failed: [ticket('order-3', { placement: 'failed', locationId: null, problem: 'no such order' })],
    };
    const unreachedContacts = [
      { locationId: 'club-4', integration: 'square', count: 2, lastAt: AT, lastProblem: 'the gateway answered 503' },
    ];
    const groups = needs(lists, { ...ATTENTION, unreachedContacts });
    expect(groups.map(({ title, count, needs }) => [title, count, ...needs.map(({ href }) => href)])).toEqual([
      ['POS systems that do not work', 1, '/console/locations/club-4'],
      ['In doubt', 1, '/console/orders/order%2F1'],
      ['Conflicts', 1, '/console/orders/order-9'],
      ['Failed orders', 1, '/console/orders/order-3'],
      ['On hold', 1, '/console/orders/order-2'],
      ['Silent locations', 1, '/console/locations/club-3'],
      ['Restaurants not notified', 1, '/console/locations/club-4'],
      [
        'Dropped webhooks',
        1_001,
        '/console/webhooks?outcome=dropped&location=club+2',
        '/console/webhooks?outcome=dropped&location=club-1',
      ],
    ]);
    expect(groups.filter(({ isCall }) => !isCall)).toEqual([]);
    expect(groups.filter(({ hint }) => hint.length > 36)).toEqual([]);
    expect(groups.flatMap(({ needs }) => needs.map(({ detail }) => detail))).toEqual([
      'acme does not answer, or answers with errors. Its orders are tried again',
      'club-1: no answer',
      'club-1: the POS reported cancelled',
      'no such order. The member was not notified.',
      'club-1: paused',
      '3 tickets sent, and the POS has sent nothing since',
      '2 messages not sent: the gateway answered with an error of its own',
      '1,000 webhooks of square: wrong signature',
      '1 webhook of standard',
    ]);
  });

  it('says of a silent location without a token what it needs before a call helps', () => {
    const silentOf = (...lacking: boolean[]): NeedGroup | undefined =>
      needs(
        {},
        {
          ...NO_ATTENTION,
          silent: lacking.map((lacks, nth) => {
            const place = { locationId: `club-${nth}`, integration: null, lastSeenAt: null, hasToken: !lacks };
            return { ...place, sent: 1, oldestSentAt: AT };
          }),
        },
      )[0];
    const lacks = 'It has no token to report with. Make one.';
    expect(silentOf(true)).toMatchObject({
      hint: 'Make a token.',
      needs: [{ brief: ['1 ticket without a report', lacks] }],
    });
    expect(silentOf(false)).toMatchObject({
      hint: 'Call the restaurant.',
      needs: [{ brief: ['1 ticket without a report'] }],
    });
    expect(silentOf(true, false)).toMatchObject({ hint: 'Call the restaurant.' });
  });

  it('counts dropped webhooks from the first, also if a process of the previous version sends only the last', () => {
    const sinceOf = (attention: Attention): number | undefined =>
      needs({}, attention).find(({ kind }) => kind === 'dropped')?.needs[0]?.since;
    const [{ firstReceivedAt, ...last }] = ATTENTION.dropped as [Attention['dropped'][number]];
    expect(sinceOf(ATTENTION)).toBe(Date.parse(firstReceivedAt));
    expect(sinceOf({ ...ATTENTION, dropped: [last as typeof last & { firstReceivedAt: string }] })).toBe(NOW);
  });

  it('begins with one entry for all members who are not being notified', () => {
    const unnotified = {
      messages: 60,
      orders: 23,
      oldestAppliedAt: AT,
      serviceOrderId: 'order-7',
      callOutCode: null,
      stoppedAt: null,
    };
    const groups = needs({}, { ...ATTENTION, unnotified }, { location: 'elsewhere' });
    expect(groups).toMatchObject([
      {
        title: 'Members are not being notified',
        count: 23,
        needs: [{ name: '60 updates of 23 orders wait', href: '/console/orders/order-7', since: NOW }],
      },
    ]);
    const said = (stoppedAt: string | null): string | undefined =>
      needs({}, { ...ATTENTION, unnotified: { ...unnotified, stoppedAt } })[0]?.needs[0]?.detail;
    expect(said(null)).toContain('sent automatically');
    expect(said(AT)).toMatch(/STATUS_WEBHOOK_URL was stopped.*expediter live resume/);
  });

  it('lists cancellations by phone and changed orders, with their location and ticket', () => {
    const cancel = {
      callOutCode: null,
      locationId: 'club-1',
      integration: 'toast',
      providerOrderId: '8F2K',
      requestedAt: AT,
    };
    const attention: Attention = {
      ...NO_ATTENTION,
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
          changes: [],
          seenAt: AT,
        },
        {
          serviceOrderId: 'order-9',
          callOutCode: 'K472',
          locationId: 'club-1',
          integration: null,
          paths: ['items'],
          changes: ['1 × Fries added', '2 × Burger instead of 1'],
          seenAt: AT,
        },
      ],
    };
    const groups = needs({}, attention, { location: 'club-1' });
    expect(groups[0]?.count).toBe(500);
    expect(groups.map(({ title, needs }) => [title, ...needs.map(({ detail }) => detail)])).toEqual([
      ['Cancel by phone', 'Cancel it by phone: club-1, ticket 8F2K', 'Cancel it by phone: club-1, ticket id unknown'],
      ['Changed after it was sent', 'club-1: notes; item 1, name', 'club-1: 1 × Fries added; 2 × Burger instead of 1'],
    ]);
    expect(needs({}, attention, { text: 'order-6' })).toMatchObject([{ count: 1 }]);
  });

  it('has one entry for all late orders of a location, and an order that may not be at its POS in time has its own', () => {
    const soon = { placement: 'waiting', problem: 'x', cause: { code: 'pos_failing' } } as const;
    const unsent = [ticket('order-1', soon), ticket('order-2', soon)];
    const late = ['17:20', '17:10'].map((time) =>
      ticket(time, { memberState: 'preparing', requestedAt: `2027-01-31T${time}:00.000Z` }),
    );
    const alone = ticket('order-5', { memberState: 'preparing', locationId: 'club-2', requestedAt: AT });
    const groups = needs({ unsent, late: [...late, alone] });
    // The columns call an order overdue from its first minute on.
    expect(groups.find(({ kind }) => kind === 'late')?.hint).toBe('Overdue 15 min: ask when ready.');
    expect(
      groups.map(({ title, count, needs }) => [title, count, ...needs.map(({ brief, href }) => [...brief, href])]),
    ).toEqual([
      [
        'Maybe not at the POS',
        2,
        ['club-1', 'POS failing', '/console/orders/order-1'],
        ['club-1', 'POS failing', '/console/orders/order-2'],
      ],
      [
        'Late orders',
        3,
        ['2 orders are late', '/console/orders?needs=late&location=club-1'],
        ['1 order is late', '/console/orders/order-5'],
      ],
    ]);
    expect(groups[1]?.needs[0]).toMatchObject({ name: 'club-1', since: Date.parse('2027-01-31T17:20:00.000Z') });
    // Who has called about the location waits for its late orders, but not for those that its POS never got.
    const called = { ...NO_CASE, kind: 'location', id: 'club-1', snoozedUntil: '2027-01-31T18:30:00.000Z' } as const;
    const after = needs({ unsent, late }, { ...NO_ATTENTION, cases: [called] });
    expect(after.map(({ needs, hidden }) => [needs.length, hidden.length])).toEqual([
      [2, 0],
      [0, 1],
    ]);
  });

  it('shows the cause of a failed order in a few words, and the stored problem of held orders', () => {
    const about = { problem: 'the POS answered 404: check ordersUrl', cause: { code: 'pos_set_up_wrong' } as const };
    const held = [ticket('a', { ...HELD, ...about })];
    const failed = [ticket('b', { placement: 'failed', ...about })];
    const groups = needs({ held, failed });
    expect(groups.map(({ needs }) => needs[0]?.brief)).toEqual([
      ['club-1', 'POS misconfigured'],
      ['club-1', 'the POS has nothing at this address: check “Orders URL”'],
    ]);
  });

  it('names the first step to take if the cause is known', () => {
    const paused = { problem: 'the location is paused', cause: { code: 'location_paused' } as const };
    const held = ['a', 'b'].map((id) => ticket(id, { ...HELD, ...paused }));
    const failed = [ticket('c', { placement: 'failed', problem: 'x', cause: { code: 'of_a_newer_version' } })];
    const details = needs({ held, failed }).flatMap((group) => group.needs.map(({ detail }) => detail));
    expect(details).toEqual([
      'club-1: x. The member was not notified.',
      expect.stringMatching(/^2 orders: the location is paused\. Resume the location/),
    ]);
  });

  it('shows one entry for all held orders of a location, with the problem of the newest of these orders', () => {
    const held = [1, 3, 2].map((hour) =>
      ticket(`${hour}`, { ...HELD, problem: `problem ${hour}`, signalledAt: `2027-01-31T0${hour}:00:00.000Z` }),
    );
    const [group] = needs({ held });
    expect(group).toMatchObject({
      count: 3,
      needs: [
        {
          name: 'club-1',
          brief: ['3 orders', 'problem 3'],
          href: '/console/orders?state=held&location=club-1',
          since: Date.parse('2027-01-31T01:00:00.000Z'),
        },
      ],
    });
  });

  it('shows orders of one location that are held by different causes apart', () => {
    const causes = ['pos_set_up_wrong', 'pos_refused_us', 'pos_set_up_wrong'] as const;
    const held = causes.map((code, nth) => ticket(`order-${nth}`, { ...HELD, cause: { code } }));
    const [group] = needs({ held });
    expect(group).toMatchObject({ count: 3, needs: [{ count: 2 }, { count: 1, code: 'K472' }] });
  });

  it('says of an order that may miss its time whether the POS may have the ticket', () => {
    const signalledAt = '2027-01-31T17:40:00.000Z';
    const soon = { signalledAt, problem: 'x', cause: { code: 'pos_failing' } } as const;
    const unsent = (['waiting', 'in_doubt'] as const).map((placement) => ticket(placement, { ...soon, placement }));
    expect(needs({ unsent })[0]?.needs.map(({ brief }) => brief)).toEqual([
      ['club-1', 'POS failing'],
      ['club-1', 'POS failing', 'it may have the ticket'],
    ]);
  });

  it.each<[string, Partial<Filter>, string[]]>([
    ['a location', { location: 'club-1' }, ['order-9, club-1', 'club-1']],
    ['an integration', { integration: 'square' }, ['order-9, club-1', 'club-3', 'club 2']],
    ['a text', { text: 'CLUB-3 ' }, ['club-3']],
    ["an order's id", { text: 'order-9' }, ['order-9, club-1']],
  ])('can be filtered by %s', (_, filter, names) => {
    expect(namesOf(needs({}, ATTENTION, filter))).toEqual(names);
  });
});

describe('a case', () => {
  const failed = [ticket('order-1', { placement: 'failed' }), ticket('order-2', { placement: 'failed' })];
  const in_doubt = [ticket('order-1', IN_DOUBT)];
  const withCase = (some: Partial<BoardCase>): Attention => ({
    ...NO_ATTENTION,
    cases: [{ ...NO_CASE, id: 'order-1', ...some }],
  });
  const later = (minutes: number): string => new Date(NOW + minutes * 60_000).toISOString();

  it('shows who has taken the case', () => {
    const [group] = needs({ failed }, withCase({ holder: 'Anna', takenAt: AT }));
    expect(group).toMatchObject({
      count: 2,
      needs: [{ taken: { holder: 'Anna', takenAt: AT, givenBy: null } }, {}],
      hidden: [],
    });
    expect(group?.needs[1]).not.toHaveProperty('taken');
  });

  it('of one of the held orders of a location gives this order its own line', () => {
    const held = ['order-1', 'order-2', 'order-3'].map((id) => ticket(id, HELD));
    const [group] = needs({ held }, withCase({ holder: 'Ann', takenAt: AT, givenBy: 'Grace' }));
    expect(group).toMatchObject({
      count: 3,
      needs: [
        { key: 'held:order-1', taken: { holder: 'Ann', givenBy: 'Grace' } },
        { key: 'held:club-1', count: 2 },
      ],
    });
  });

  it('that is snoozed is hidden until the chosen time', () => {
    const attention = withCase({ snoozedAt: AT, snoozedUntil: later(30) });
    const [group] = needs({ failed }, attention);
    expect(group).toMatchObject({ count: 1, needs: [{ key: 'failed:order-2' }], hidden: [{ key: 'failed:order-1' }] });
    const [after] = needs({ failed }, attention, {}, Date.parse(later(30)));
    expect(after).toMatchObject({ count: 2, hidden: [] });
  });

  it('that is snoozed hides neither a later problem of the order nor an order in doubt', () => {
    const earlier = withCase({ snoozedAt: later(-1), snoozedUntil: later(30) });
    expect(needs({ failed }, earlier)[0]).toMatchObject({ count: 2, hidden: [] });
    const snoozed = withCase({ snoozedAt: later(1), snoozedUntil: later(30) });
    expect(needs({ in_doubt }, snoozed)).toMatchObject([{ count: 1, hidden: [] }]);
  });

  it('that is closed is hidden until the order has a later problem', () => {
    const [group] = needs({ failed }, withCase({ closedAt: later(1) }));
    expect(group).toMatchObject({ count: 1, hidden: [{ key: 'failed:order-1' }] });
    const [again] = needs({ failed }, withCase({ closedAt: later(-1) }));
    expect(again).toMatchObject({ count: 2, hidden: [] });
  });

  it('that is closed does not hide an order in doubt', () => {
    const [group] = needs({ in_doubt }, withCase({ closedAt: later(1) }));
    expect(group).toMatchObject({ title: 'In doubt', count: 1, hidden: [] });
  });

  it('of a location that is snoozed hides no later problem of the location', () => {
    const of = (snoozedAt: string) =>
      ({ ...NO_CASE, kind: 'location', id: 'club-1', snoozedAt, snoozedUntil: later(60) }) as const;
    const held = [0, 8].map((minutes) => ticket(`order-${minutes}`, { ...HELD, signalledAt: later(minutes) }));
    const requestedAt = later(-20);
    const late = [ticket('order-2', { memberState: 'preparing', requestedAt })];
    const hiddenAfter = (minutes: number, lists: Partial<Lists>): (readonly [string, boolean])[] => {
      const attention = { ...ATTENTION, conflicts: [], silent: [], unreachable: [], cases: [of(later(minutes))] };
      return needs(lists, attention, { location: 'club-1' }).map(({ kind, hidden }) => [kind, hidden.length > 0]);
    };
    expect(hiddenAfter(9, { held, late })).toEqual([
      ['held', true],
      ['late', true],
      ['dropped', true],
    ]);
    // A second order was held, and the order became late by 15 minutes, after the snooze.
    expect(hiddenAfter(7, { held })).toEqual([
      ['held', false],
      ['dropped', true],
    ]);
    expect(hiddenAfter(-6, { late })).toEqual([
      ['late', false],
      ['dropped', true],
    ]);
  });

  it("hides only the entries of one location if it is a location's case", () => {
    const attention = {
      ...ATTENTION,
      cases: [{ ...NO_CASE, kind: 'location', id: 'club 2', snoozedUntil: later(9) } as const],
    };
    const dropped = needs({}, attention).find(({ title }) => title === 'Dropped webhooks');
    expect(dropped).toMatchObject({ count: 1, needs: [{ name: 'club-1' }], hidden: [{ name: 'club 2' }] });
  });
});

function ticket(serviceOrderId: string, some: Partial<BoardOrder>): Ticket {
  const endedAt = some.placement === 'failed' ? AT : null;
  return ticketOf(sampleBoardOrder(serviceOrderId, { signalledAt: AT, memberState: null, endedAt, ...some }), NOW, 0);
}

function namesOf(groups: NeedGroup[]): string[] {
  return groups.flatMap(({ needs }) => needs.map(({ name }) => name));
}
