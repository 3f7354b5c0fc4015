import { describe, expect, it } from 'vitest';
import { doneMeanwhile } from '../../console/orders/asks.ts';
import { doneSince } from '../../console/parts/done-since.ts';
import {
  answersMean,
  conflictHelp,
  conflictSays,
  conflictsOf,
  isCaseClosed,
  refreshAfterMs,
  retryMeans,
  whatToDo,
} from '../../console/orders/what-to-do.ts';
import { cancelMeans, canBeCancelled, howCancelStands } from '../../console/orders/how-cancel-stands.ts';
import { howChangeStands, isWrong } from '../../console/orders/how-change-stands.ts';
import type { ShownOrder } from '../../console/wire.ts';
import { PLACEMENT_STATES } from '../../src/core/domain/placement.ts';
import { sampleStory } from './sample-story.ts';

const SOON = '2027-01-31T18:01:00+00:00';
const NOW = Date.parse('2027-01-31T18:00:30+00:00');

/** An open order by default. */
function story(
  placement: Partial<ShownOrder['placement']> = {},
  order: Partial<NonNullable<ShownOrder['order']>> | null = {},
): ShownOrder {
  const sample = sampleStory();
  return {
    ...sample,
    placement: { ...sample.placement, state: 'waiting', finishedAt: null, nextAttemptAt: SOON, ...placement },
    order: order && sample.order && { ...sample.order, memberState: 'placed', endedAt: null, erasedAt: null, ...order },
    live: sample.live.map((message) => ({ ...message, publishedAt: message.appliedAt })),
  };
}
const sent = { state: 'sent', finishedAt: SOON, nextAttemptAt: null } as const;
const failed = { ...sent, state: 'failed' } as const;
const asks = {
  state: 'in_doubt',
  nextAttemptAt: null,
  problem: 'the POS may have the order and cannot be asked',
} as const;

const RETRY = { canRetry: true, canResolve: false } as const;
const RESOLVE = { canRetry: false, canResolve: true } as const;
const NEITHER = { canRetry: false, canResolve: false } as const;

it('no member waits for a test order that failed', () => {
  const test = { ...story(failed), serviceOrderId: 'certify-0123456789abcdef' };
  expect(whatToDo(test)).toMatchObject({ sentence: 'The test order failed', advice: 'No member waits for it.' });
});

describe('the actions of an order', () => {
  it.each([
    ['a waiting order can be retried', story(), { ...RETRY, nextAt: SOON }],
    ['a held order can be retried', story({ state: 'held', problem: 'paused' }), { ...RETRY, tone: 'warn' }],
    ['an order that needs an operator can be resolved, but not retried', story(asks), { ...RESOLVE, tone: 'bad' }],
    [
      'an order in doubt that may be settled automatically can be retried and resolved',
      story({ state: 'in_doubt' }),
      { canRetry: true, canResolve: true },
    ],
    ['an order that a worker has claimed has no actions', story({ underWay: true }), NEITHER],
    ['a claimed order in doubt has no actions', story({ ...asks, underWay: true }), { ...NEITHER, tone: 'busy' }],
    [
      'a failed order has no actions',
      story({ ...failed, problem: 'unknown item' }),
      { ...NEITHER, tone: 'bad', problem: 'unknown item' },
    ],
    [
      'an order that failed before it was fetched can be retried',
      story({ ...failed, problem: 'no such order' }, null),
      { ...RETRY, tone: 'bad', sentence: 'The order failed before it could be read' },
    ],
  ] as const)('%s', (_, story, expected) => {
    expect(whatToDo(story)).toMatchObject(expected);
  });

  it('are shown with the next step for the cause of the problem', () => {
    const held = story({ state: 'held', problem: 'no', cause: { code: 'pos_refused_us' } });
    expect(whatToDo(held)?.toDo[0]?.say).toContain('Check at the POS that our access is still granted');
    expect(whatToDo(story({ state: 'held', problem: 'paused' }))?.toDo).toEqual([]);
  });

  it.each(['location_paused', 'location_paused_by_pos'] as const)('a paused order (%s) cannot be retried', (code) => {
    const told = whatToDo(story({ state: 'held', problem: 'paused', cause: { code } }));
    expect(told).toMatchObject({
      canRetry: false,
      isPaused: true,
      sentence: expect.stringContaining('The order waits'),
    });
    expect(told).not.toHaveProperty('failsAt');
  });

  it('an order that needs an answer is named by its call-out code in the question', () => {
    expect(whatToDo(story(asks))).toMatchObject({ sentence: 'Is K472 at the POS?', isProblemLast: true });
  });

  it('an order in doubt that is retried makes no second ticket, and the question waits for a person', () => {
    const retried = story({ state: 'in_doubt', problem: 'no answer' });
    const told = [whatToDo(retried)?.sentence, ...retryMeans(retried, NOW)];
    expect(told).toEqual(told.map(() => expect.stringContaining('tried again')));
    expect(told).toEqual(told.map(() => expect.stringContaining('without a second ticket')));
    expect(whatToDo(story(asks))?.advice).toBe('We do not send it again by ourselves.');
  });

  it.each([
    ['a pickup', { requestedAt: SOON }, 'K472 is late by 30 min'],
    [
      'a delivery by the estimate of the POS',
      { fulfillment: 'delivery', estimatedDeliveryAt: SOON, requestedAt: null },
      'K472 is late by 30 min',
    ],
    ['a pickup that is ready', { requestedAt: SOON, memberState: 'ready_for_pickup' }, undefined],
    ['an order that has ended', { requestedAt: SOON, endedAt: SOON }, undefined],
    ['an order for as soon as possible', { requestedAt: null }, undefined],
  ] as const)('%s half an hour after its time asks for a call: %j', (_, order, sentence) => {
    const known = { estimatedReadyAt: null, estimatedDeliveryAt: null, fulfillment: 'pickup', ...order } as const;
    const one = story(sent, known);
    expect(whatToDo(one, Date.parse(SOON) + 30 * 60_000)?.sentence).toBe(sentence);
    expect(whatToDo(one, Date.parse(SOON) + 14 * 60_000)).toBeUndefined();
  });

  it('an order that only a pause holds needs nobody', () => {
    const held = story({ state: 'held', problem: 'paused', cause: { code: 'location_paused' } });
    expect(isWrong({ ...held, cancellation: null, history: [] })).toBe(false);
  });

  it('only an order with something wrong needs somebody', () => {
    expect([story(), story(sent)].map((each) => isWrong({ ...each, cancellation: null, history: [] }))).toEqual([
      false,
      false,
    ]);
    expect([story(failed), story(asks), story({ problem: '503' }), both].map(isWrong)).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });

  it('an order that is at its POS or withdrawn has no actions', () => {
    expect(whatToDo(story({ state: 'withdrawn', finishedAt: SOON, nextAttemptAt: null }))).toBeUndefined();
    expect(whatToDo(story(sent))).toBeUndefined();
  });

  it('each abnormal state has a sentence', () => {
    for (const state of PLACEMENT_STATES.filter((state) => !['sent', 'withdrawn'].includes(state))) {
      for (const problem of ['the POS answered 503', null]) {
        const told = whatToDo(story({ state, problem, finishedAt: state === 'failed' ? SOON : null }));
        expect(told?.sentence).toMatch(/^[A-Z]/);
        expect(told?.problem).toBe(problem);
      }
    }
  });

  it('a failed order shows what the member was notified of, in the words of the service', () => {
    for (const order of [{}, null]) {
      const about = { ...story(failed, order), notified: 'The member was notified of a secret.' };
      expect(whatToDo(about)?.advice).toMatch(/^The member was notified of a secret\. /);
    }
    expect(whatToDo(story(failed))?.advice).toContain('the platform must place a new order');
    expect(whatToDo(story(failed, null))?.advice).toContain('starts again');
  });

  it('an order that waits or is held shows its deadline, and an order in doubt does not', () => {
    const { deadlineAt } = story().placement;
    for (const state of ['waiting', 'held'] as const) expect(whatToDo(story({ state }))?.failsAt).toBe(deadlineAt);
    expect(whatToDo(story({ state: 'in_doubt' }))).not.toHaveProperty('failsAt');
    expect(whatToDo(story(asks))).not.toHaveProperty('failsAt');
  });
});

/** An open order with reports of its POS, of which some contradict. `at` are seconds after six. */
function reported(
  order: Parameters<typeof story>[1],
  ...reports: [status: string, conflict?: boolean, posId?: string][]
) {
  const one = story(sent, order);
  const event = one.history[0] ?? expect.unreachable();
  one.history = reports.map(([status, conflict = false, providerOrderId = '8F2K'], nth) => ({
    ...event,
    status,
    conflict,
    providerOrderId,
    recordedAt: `2027-01-31T18:00:0${nth}+00:00`,
  }));
  return one;
}
const both = reported({ status: 'cancelled', memberState: 'cancelled' }, ['completed'], ['cancelled', true]);

describe('a conflict', () => {
  it.each([
    [
      'completed, then cancelled',
      both,
      'The POS reported “completed” and “cancelled”. The member was last told “cancelled”.',
    ],
    [
      'progress of an order that we cancelled',
      reported({ status: 'cancelled', memberState: 'cancelled' }, ['in_progress', true]),
      'The POS reported “in progress”, but the member was told “cancelled”.',
    ],
    [
      'progress of an order that we cancelled, and then its cancellation',
      reported({ status: 'cancelled', memberState: 'cancelled' }, ['in_progress', true], ['cancelled']),
      'The POS reported “in progress” and “cancelled”. The member was last told “cancelled”.',
    ],
    [
      'the id of another order',
      reported({ status: 'ready', memberState: 'ready_for_pickup' }, ['ready', true, 'OTHER']),
      'The POS gave this order the id of another order.',
    ],
  ])('says what is true: %s', (_, one, says) => expect(conflictSays(one)).toBe(says));

  it('says what the member sees, whether that can change, and what a person can do', () => {
    expect(conflictHelp(both)).toMatch(/^The member sees “cancelled” now\. .* tell the member /);
    const open = reported({ status: 'ready', memberState: 'ready_for_pickup' }, ['ready', true, 'OTHER']);
    expect(conflictHelp(open)).toMatch(
      /^The member sees “ready for pickup” now\. A later status from the POS corrects it:/,
    );
  });
});

describe('a closed case', () => {
  const before = '2027-01-31T17:59:00+00:00';
  const change = { state: 'waiting', since: SOON, waits: true, changes: ['1 more'] } as unknown as ShownOrder['change'];
  it.each([
    ['a failure', story(failed), SOON],
    ['a conflict', both, '2027-01-31T18:00:01+00:00'],
    ['a change', { ...story(sent), change }, SOON],
  ])('settles %s of before then, and no later one', (_, one, closedAt) => {
    const tones = (shown: ShownOrder) => [whatToDo(shown)?.tone, howChangeStands(shown)?.tone];
    for (const open of [one, { ...one, closedAt: before }]) {
      expect(isCaseClosed(open)).toBe(false);
      expect([...tones(open), conflictsOf(open).length > 0 && 'bad']).toContain('bad');
    }
    const closed = { ...one, closedAt };
    expect(isCaseClosed(closed)).toBe(true);
    expect([...tones(closed), conflictsOf(closed).length > 0 && 'bad']).not.toContain('bad');
  });
});

describe('a dialog that is open while others act', () => {
  const act = { auditId: '9', at: SOON, by: { kind: 'token', id: '1', name: 'Ann' }, outcome: 'done', endedAt: SOON };
  const after = (action: string, now: ShownOrder, outcome = 'done'): ShownOrder => ({
    ...now,
    actions: [{ ...sampleStory().actions[0], ...act, action, outcome, before: null, after: null } as never],
  });
  const held = story({ state: 'held', problem: 'no' });
  const doubt = story(asks);

  it('says who has done it, and when', () => {
    expect(doneMeanwhile('retry', held, after('retry', held))).toMatch(
      /^Ann \(token\) retried the order at .+\. Nothing /,
    );
    expect(doneMeanwhile('there', doubt, after('resolve', doubt))).toMatch(/^Ann .+ at the POS at /);
    expect(doneMeanwhile('there', doubt, after('cancel', story(sent)))).toMatch(/^Ann .* cancelled the order at /);
    expect(doneSince(held, after('close case', held), ['close case'])).toMatch(/^Ann .* closed the case at /);
  });

  it('may act if nobody has done it, or somebody failed to', () => {
    expect(doneMeanwhile('retry', held, held)).toBeUndefined();
    for (const [action, outcome] of [
      ['retry', 'refused'],
      ['retry', 'failed'],
      ['note', 'done'],
      ['cancel', 'done'],
    ] as const)
      expect(doneMeanwhile('retry', held, after(action, held, outcome))).toBeUndefined();
    expect(doneMeanwhile('retry', after('retry', held), after('retry', held)), 'from before').toBeUndefined();
  });

  it('says that the order has changed if the page offers the action no more', () => {
    for (const asking of ['retry', 'there', 'not there', 'cancelled', 'continues', 'done', 'too late'] as const)
      expect(doneMeanwhile(asking, doubt, story(sent))).toMatch(/^The order has changed meanwhile/);
  });
});

describe('a cancellation', () => {
  const open = {
    state: 'due',
    requestedBy: 'platform',
    requestedAt: SOON,
    problem: null,
    cause: null,
    underWay: false,
    nextAttemptAt: SOON,
    finishedAt: null,
  } as const;
  const cancelling = (some: Partial<NonNullable<ShownOrder['cancellation']>>): ShownOrder => ({
    ...story(sent),
    cancellation: { ...open, ...some },
  });
  const stuck = { nextAttemptAt: null, problem: 'this POS cannot be asked' };

  it.each([
    [
      'that will be retried can be requested again',
      cancelling({}),
      { canCancel: true, canConclude: false, tone: 'busy' },
    ],
    [
      'that a worker has claimed has no actions',
      cancelling({ underWay: true }),
      { canCancel: false, canConclude: false },
    ],
    ['that failed shows its next attempt', cancelling({ problem: 'no answer' }), { tone: 'warn', nextAt: SOON }],
    [
      'that the POS has yet to confirm has no actions',
      cancelling({ state: 'asked' }),
      { canCancel: false, tone: 'busy' },
    ],
    [
      'that only a person can do shows the call-out code and the ticket',
      cancelling({ state: 'by_phone', ...stuck }),
      { sentence: 'Cancel K472 by phone: club-1', advice: expect.stringContaining('ticket 8F2K'), canConclude: true },
    ],
    [
      'whose answer was lost asks to check the POS',
      cancelling({ state: 'in_doubt' }),
      { canConclude: true, tone: 'warn', advice: expect.stringContaining('ticket 8F2K') },
    ],
    [
      'that was refused can be requested again, also by phone',
      cancelling({
        state: 'refused',
        finishedAt: SOON,
        nextAttemptAt: null,
        problem: 'too late',
        cause: { code: 'cancel_refused' },
      }),
      { canCancel: true, canConclude: true, problem: 'too late', tone: 'warn' },
    ],
    [
      'that the restaurant refused by phone asks nothing',
      cancelling({ state: 'refused', finishedAt: SOON, nextAttemptAt: null }),
      { canCancel: true, canConclude: false, sentence: 'The order was not cancelled' },
    ],
    [
      'that the POS cannot do is not requested there again',
      cancelling({ state: 'by_phone', ...stuck, cause: { code: 'pos_cannot_cancel' } }),
      { canCancel: false, canConclude: true },
    ],
  ])('%s', (_, story, expected) => {
    expect(howCancelStands(story)).toMatchObject(expected);
    expect(canBeCancelled(story), 'there is a button already').toBe(false);
  });

  it('that came too late says how the order ended', () => {
    const over = cancelling({ state: 'refused', finishedAt: SOON, nextAttemptAt: null });
    if (over.order) Object.assign(over.order, { endedAt: SOON, memberState: 'picked_up' });
    expect(howCancelStands(over)).toMatchObject({
      sentence: 'Too late to cancel: the order was picked up',
      canCancel: false,
      canConclude: false,
    });
  });

  it('that succeeded is not shown, and an ended order cannot be cancelled', () => {
    expect(howCancelStands(cancelling({ state: 'cancelled', finishedAt: SOON }))).toBeUndefined();
    const ended = { ...story(sent, { endedAt: SOON }), cancellation: null };
    expect(howCancelStands(ended)).toBeUndefined();
    expect(canBeCancelled(ended)).toBe(false);
    expect(canBeCancelled({ ...ended, order: null })).toBe(false);
    expect(canBeCancelled({ ...story(sent), cancellation: null })).toBe(true);
  });

  it('is explained before the operator requests it: the text says whether the POS will be asked', () => {
    expect(cancelMeans(story(sent))).toMatch(/The POS has the order as 8F2K.*once the POS confirms it.*may refuse/);
    expect(cancelMeans(story({ state: 'in_doubt' }))).toContain('or may have the order');
    expect(cancelMeans(story())).toContain('withdrawn');
    expect(cancelMeans(story(sent), false)).toMatch(
      /cannot be asked to cancel it: nothing is sent there. Telephone the/,
    );
    expect(cancelMeans(story(), false)).toContain('withdrawn');
  });

  it('shows a warning before it is requested again only if the POS may already have the first request', () => {
    const again = 'The POS may already have the request: this sends it again.';
    for (const state of ['asked', 'in_doubt', 'by_phone'] as const) {
      expect(cancelMeans(cancelling({ state }))).toContain(again);
    }
    for (const each of [cancelling({}), cancelling({ state: 'refused' }), { ...story(sent), cancellation: null }]) {
      expect(cancelMeans(each)).not.toContain(again);
    }
  });

  it('that is in progress is reloaded as often as an order in progress', () => {
    expect(refreshAfterMs(cancelling({}))).toBe(refreshAfterMs(story()));
  });
});

describe('a confirmation', () => {
  it('says that a retry happens now, and that a failure is final', () => {
    for (const state of ['waiting', 'held'] as const) {
      expect(retryMeans(story({ state }), NOW).join(' ')).toMatch(/now.*fails, which is final/);
    }
    expect(retryMeans(story({ state: 'held', problem: 'the location is paused' }), NOW).join()).toContain(
      'the location is paused',
    );
    expect(retryMeans(story({}, null), NOW).join()).toContain('fetched');
    expect(retryMeans(story({ state: 'in_doubt' }), NOW).join()).toContain('without a second ticket');
    expect(retryMeans(story({ state: 'failed' }, null), NOW).join()).toContain('starts again');
  });

  it('says that a retry past the deadline makes the order fail, unless the POS may have the order', () => {
    const past = { deadlineAt: '2027-01-31T18:00:00+00:00' };
    for (const state of ['waiting', 'held'] as const) {
      expect(retryMeans(story({ ...past, state }), NOW)[0]).toMatch(/not sent any more.*fails.*the member is notified/);
    }
    expect(retryMeans(story(past, null), NOW).join()).toMatch(/fails at once, and the member is notified/);
    expect(retryMeans(story({ ...past, state: 'in_doubt' }), NOW).join()).not.toContain('fails');
  });

  it('warns of a second ticket before the answer "not there"', () => {
    const wanted = { ...story(asks), cancellation: null };
    expect(answersMean(wanted, NOW).notThere).toMatch(/sent again at once, without asking the POS.*second ticket/);
    expect(answersMean(story(asks), NOW).notThere).toContain('withdrawn');
    expect(answersMean(story(asks), NOW).there).toContain('nobody cooks it');
  });

  it('says before the answer "not there" that an order past its deadline or its end is not sent again', () => {
    const late = { ...story({ ...asks, deadlineAt: '2027-01-31T18:00:00+00:00' }), cancellation: null };
    expect(answersMean(late, NOW).notThere).toMatch(/not sent any more.*fails/);
    expect(answersMean(story(asks, { endedAt: '2027-01-31T18:00:00+00:00' }), NOW).notThere).toContain('not sent');
  });
});

describe('the interval of reloading a timeline', () => {
  it('is shorter for an order that changes more often', () => {
    const unpublished = story(sent);
    unpublished.live = sampleStory().live;
    const waits = [unpublished, story(), story(sent), story(sent, { endedAt: SOON })].map(refreshAfterMs);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(new Set(waits).size).toBe(4);
    expect(refreshAfterMs(story())).toBeLessThan(5_000);
    expect(refreshAfterMs(undefined)).toBeGreaterThan(5_000);
  });
});

describe('a change by the platform', () => {
  const changed = (state: string, waits: boolean, order: object = {}): ShownOrder => ({
    ...story(sent, order),
    change: { state, since: SOON, waits, changes: ['1 × Fries added', '2 × Burger instead of 1'] },
  });

  it('that waits asks what the restaurant said, with all that is changed', () => {
    expect(howChangeStands(changed('not_applied', true))).toMatchObject({
      tone: 'bad',
      sentence: 'The platform changed K472 after it was sent',
      problem: '1 × Fries added; 2 × Burger instead of 1',
      canAnswer: true,
    });
  });

  it('that is answered says so, and asks nothing', () => {
    const sentence = "The platform's change after it was sent: too late";
    expect(howChangeStands(changed('too_late', false))).toMatchObject({ tone: 'warn', sentence, canAnswer: false });
    expect(howChangeStands(changed('applied', false))).toMatchObject({ tone: 'good', canAnswer: false });
    expect(howChangeStands(changed('of a newer version', false))).toMatchObject({ canAnswer: false });
  });

  it('is not shown without a change, after the end of the order, or by a process of the previous version', () => {
    expect(howChangeStands(story(sent))).toBeUndefined();
    expect(howChangeStands(changed('not_applied', false, { endedAt: SOON }))).toBeUndefined();
    const { change: _change, ...before } = story(sent);
    expect(howChangeStands(before as ShownOrder)).toBeUndefined();
  });
});
