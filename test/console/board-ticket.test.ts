import { describe, expect, it } from 'vitest';
import { columnsInNeed, columnToOpen } from '../../console/board/column-in-need.ts';
import { inShort } from '../../src/core/domain/explain-cause.ts';
import { itemsThatFit, linesOf } from '../../console/board/items-that-fit.ts';
import { needsOf } from '../../console/board/needs-of.ts';
import { ticketOf, type Ticket } from '../../console/board/ticket-of.ts';
import { elsewhere, wrongWith } from '../../console/board/wrong-with.ts';
import { dayAndTime } from '../../console/parts/clock-time.ts';
import type { Attention, BoardOrder } from '../../console/wire.ts';
import { PLACEMENT_CODES } from '../../src/core/domain/placement-cause.ts';
import { NO_ATTENTION } from './no-attention.ts';
import { NOW, at, boardOf, sampleBoardOrder as order } from './sample-board-order.ts';

const HELD = { needsOperator: true, placement: 'held' } as const;
const IN_DOUBT = { needsOperator: true, placement: 'in_doubt' } as const;

describe('the problem on a ticket', () => {
  it('has at most three lines for every cause', () => {
    for (const code of PLACEMENT_CODES) {
      const words = inShort({ code });
      expect(words, code).toBeDefined();
      expect(linesOf(`in doubt: ${words}`, 18), words).toBeLessThanOrEqual(3);
    }
    expect(inShort({ code: 'of_a_newer_version' })).toBeUndefined();
    expect(inShort({ code: 'constructor' })).toBeUndefined();
  });

  it.each<[string, Partial<BoardOrder>, string, boolean?]>([
    ['all is well', {}, 'nothing'],
    ['it is in doubt', { ...IN_DOUBT, cause: { code: 'pos_silent' } }, 'in doubt: no answer', true],
    [
      'it may be settled automatically',
      { placement: 'in_doubt', cause: { code: 'order_absent_yet' } },
      'in doubt: POS is checked again',
      false,
    ],
    ['it is held', { ...HELD, cause: { code: 'wrong_settings', issues: [] } }, 'held: wrong settings', true],
    ['it is held by a cause of a newer version', { ...HELD, cause: { code: 'new' } }, 'held', true],
    [
      'it is retried when it is nearly due',
      { placement: 'in_doubt', requestedAt: at(9), problem: '503', cause: { code: 'pos_failing' } },
      'in doubt: POS failing',
      true,
    ],
    ['a pause holds it', { placement: 'held', cause: { code: 'location_paused' } }, 'held: location paused', false],
    ['it failed', { placement: 'failed', cause: { code: 'deadline_passed' } }, 'deadline passed', true],
    ['the POS reported failed', { memberState: 'failed' }, 'failed at POS', true],
    [
      'it is tried again',
      { signalledAt: at(-9), placement: 'waiting', problem: '503', cause: { code: 'pos_failing' } },
      'retrying: POS failing',
      false,
    ],
    [
      'it cannot be fetched again',
      { refreshFailure: { since: at(-1), problem: '503', cause: { code: 'platform_failing' }, nextAttemptAt: at(1) } },
      'not fetched again: platform failing',
      false,
    ],
    ['its webhooks are dropped', { locationId: 'deaf' }, 'its webhooks are dropped', false],
    ['its webhooks are dropped, but a later one was applied', { locationId: 'deaf', updatedAt: at(1) }, 'nothing'],
    [
      'its webhooks are dropped, but it has a later status',
      { locationId: 'deaf', memberState: 'preparing' },
      'nothing',
    ],
    ['its POS is silent', { locationId: 'mute' }, `no report since ${dayAndTime(at(-9))}`, false],
    ['its POS was never heard', { locationId: 'new' }, `no report since ${dayAndTime(at(-9))}`, false],
    ['its silent POS has confirmed it', { locationId: 'mute', memberState: 'preparing' }, 'nothing'],
    ['the platform changed it', { change: 'not_applied', needsOperator: true }, 'changed: tell the restaurant', true],
    ['its change is applied', { change: 'applied' }, 'nothing'],
    ['its cancel was requested', { cancellation: 'requested' }, 'cancel requested', false],
    ['its POS refused to cancel it', { cancellation: 'refused' }, 'cancel refused', false],
    ['a person must cancel it', { serviceOrderId: 'by-phone', cancellation: 'requested' }, 'cancel by phone', true],
    ['it was cancelled', { cancellation: 'requested', memberState: 'cancelled', endedAt: at(-5) }, 'nothing'],
    [
      'a webhook contradicts its end',
      { serviceOrderId: 'contradicted', memberState: 'cancelled', endedAt: at(-5) },
      'POS reported completed',
      true,
    ],
  ])('says "$2" when $0', (_, some, words, needsPerson) => {
    const about = { callOutCode: null, locationId: 'club-1' };
    const attention: Attention = {
      ...NO_ATTENTION,
      conflicts: [
        {
          ...about,
          serviceOrderId: 'contradicted',
          status: 'completed',
          recordedAt: at(-1),
          webhookId: null,
        },
      ],
      cancelByPhone: [
        {
          ...about,
          serviceOrderId: 'by-phone',
          integration: null,
          providerOrderId: null,
          requestedAt: at(-1),
        },
      ],
      dropped: [
        {
          locationId: 'deaf',
          integration: 'x',
          count: 1,
          firstReceivedAt: at(0),
          lastReceivedAt: at(0),
          lastReason: null,
          lastCause: null,
        },
      ],
      silent: [
        { locationId: 'mute', integration: 'x', lastSeenAt: at(-24), sent: 1, oldestSentAt: at(-9), hasToken: true },
        { locationId: 'new', integration: 'x', lastSeenAt: null, sent: 1, oldestSentAt: at(-9), hasToken: true },
      ],
    };
    const wrong = wrongWith(ticket('order-1', some), elsewhere(attention));
    expect(wrong?.words ?? 'nothing').toBe(words);
    expect(wrong?.needsPerson).toBe(needsPerson);
  });
});

describe('the items on a ticket', () => {
  const ordered = (...names: string[]): NonNullable<BoardOrder['ordered']> => ({
    items: names.slice(0, 3).map((name) => ({ name, quantity: 2 })),
    lines: names.length,
    total: 100,
    currency: 'EUR',
  });
  it.each<[string[], number, string[]]>([
    [['Cola'], 1, ['2× Cola']],
    [['Cola', 'Fries'], 2, ['2× Cola', '2× Fries']],
    [['Cola', 'Fries'], 1, ['2× Cola', '2× Fries']],
    [['Cola', 'Apple pie'], 1, ['2× Cola', '+ 1 more']],
    [['Cola', 'Fries', 'Soup', 'Cake'], 3, ['2× Cola', '2× Fries', '2× Soup', '+ 1 more']],
    [['Margherita', 'Tiramisu', 'Soup', 'Cake'], 2, ['2× Margherita', '+ 3 more']],
    [['Tagliatelle al ragù', 'Cola'], 3, ['2× Tagliatelle al ragù', '2× Cola']],
    [['Tagliatelle al ragù', 'Cola'], 2, ['2 items']],
    [['Donaudampfschifffahrtsgesellschaft'], 1, ['1 item']],
    [['Cola'], 0, []],
  ])('the items %j are shown in %d lines as %j', (names, lines, said) => {
    expect(itemsThatFit(ordered(...names), { chars: 18, lines })).toEqual(said);
  });
});

describe('the column that a phone opens on', () => {
  const late = { signalledAt: at(-40), requestedAt: at(-5), memberState: 'preparing' } as const;
  const attention: Attention = {
    ...NO_ATTENTION,
    conflicts: [
      {
        serviceOrderId: 'contradicted',
        callOutCode: null,
        locationId: 'club-1',
        status: 'completed',
        recordedAt: at(-1),
        webhookId: null,
      },
    ],
    cases: [
      {
        kind: 'order',
        id: 'aside',
        locationId: 'club-1',
        holder: null,
        givenBy: null,
        takenAt: null,
        snoozedUntil: null,
        snoozedAt: null,
        closedAt: at(1),
      },
    ],
  };
  it.each<[string, Record<string, Partial<BoardOrder>>, string]>([
    ['there is no order', {}, 'placed'],
    ['all is well', { one: { memberState: 'confirmed' } }, 'confirmed'],
    ['an order is late', { one: {}, two: late }, 'preparing'],
    ['one order failed, and another is late', { one: { placement: 'failed' }, two: late }, 'failed'],
    ['the case of the failed order is closed', { aside: { placement: 'failed' }, two: late }, 'preparing'],
    [
      'a webhook contradicts the end of an order, and another is late',
      { contradicted: { memberState: 'cancelled', endedAt: at(-5) }, two: late },
      'done',
    ],
    [
      'one order is held, and another failed',
      { one: { placement: 'failed' }, two: { ...HELD, memberState: 'placed' } },
      'placed',
    ],
    [
      'two orders of a location are held, and another failed',
      { one: { placement: 'failed' }, two: { ...HELD, memberState: 'placed' }, three: { ...HELD, memberState: null } },
      'placed',
    ],
    [
      'one order is held, and another is in doubt',
      { one: { ...HELD, memberState: 'placed' }, two: IN_DOUBT },
      'placed',
    ],
  ])('is "$2" when $0', (_, orders, column) => {
    const board = boardOf(Object.entries(orders).map(([id, some]) => order(id, some)));
    const groups = needsOf(board.lists, attention, { location: '', integration: '', text: '' }, NOW);
    const needs = groups.flatMap((group) => group.needs);
    expect(columnToOpen(board, columnsInNeed(board, needs))).toBe(column);
  });
});

function ticket(id: string, some: Partial<BoardOrder>): Ticket {
  return ticketOf(order(id, some), NOW, 0);
}
