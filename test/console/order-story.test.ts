import { describe, expect, it } from 'vitest';
import { essentials, type Essential } from '../../console/orders/essentials.ts';
import { foldTries } from '../../console/orders/fold-tries.ts';
import { describeHappening } from '../../console/orders/describe-happening.ts';
import { storyLines } from '../../console/orders/story-lines.ts';
import type { Happening, ShownOrder } from '../../console/wire.ts';
import { EVENT_OUTCOMES, WEBHOOK_OUTCOMES } from '../../src/core/domain/webhook.ts';
import { HAPPENINGS, orderTimeline } from '../../src/core/orders/order-timeline.ts';
import { sampleStory } from './sample-story.ts';

const tell = (what: Happening['what'], details: object, story = sampleStory()): ReturnType<typeof describeHappening> =>
  describeHappening({ at: '2027-01-31T18:00:05.000000+00:00', what, details: { ...details } }, story);

const call = { attempt: 2, call: 'createOrder', outcome: 'placed', httpStatus: 200, milliseconds: 43, error: null };
const ended = (about: object): ReturnType<typeof tell> => tell('call ended', { ...call, ...about });
const retriedFrom = (before: string): ShownOrder['actions'] =>
  sampleStory().actions.map((each) => ({ ...each, before }));
const webhookId = '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33';
const reported = (about: object): ReturnType<typeof tell> =>
  tell('status', {
    status: 'ready',
    nativeStatus: 'READY',
    outcome: 'applied',
    conflict: false,
    sequence: 3,
    providerOrderId: null,
    reason: null,
    webhookId,
    occurredAt: null,
    ...about,
  });
const webhook = { webhookId, integration: 'standard', outcome: 'applied', events: 1, reason: null, replayOf: null };

describe('an event in a timeline', () => {
  const story = sampleStory();
  const lines = storyLines(story);

  it('is described by a sentence of its own for each kind of event', () => {
    expect(new Set(story.timeline.map(({ what }) => what))).toEqual(new Set(HAPPENINGS));
    for (const line of lines) {
      expect(line.sentence).not.toBe(line.what);
      expect(line.sentence).toMatch(/^[A-Z][^.]{8,}[^.]$/);
      expect(`${line.sentence} ${line.more.join(' ')}`).not.toMatch(/undefined|null|NaN|\[object/);
    }
  });

  it('comes after earlier events, from the signal to the end', () => {
    expect(lines.map(({ sentence }) => sentence)).toEqual([
      'The platform signalled the order',
      'The order was fetched from the platform',
      'Member notified: placed',
      'The update was published to the platform',
      'The order is sent to the POS',
      'There was no usable answer',
      'Grace retried the order',
      'The order is sent to the POS',
      'The POS has the order',
      'Member notified: sent',
      'The ticket is at the POS',
      'The update was published to the platform',
      'The platform changed the order after it was sent',
      'Cancellation requested by the member',
      'The POS is asked to cancel the order',
      'The POS will report whether it cancels the order',
      'The order cannot be fetched again: a change or cancel may be missing',
      'The restaurant (Kitchen) was notified by e-mail of an order to cancel',
      'Kitchen answered: cancelled',
      'A webhook updated the order',
      'The POS reported: cancelled',
      'Member notified: cancelled',
      'The order is cancelled',
      'The order has ended',
      'The replay of a webhook repeated a known status',
      'The POS reported: cancelled (already known)',
      'The data of the member was erased',
    ]);
  });

  it('a call shows the answer of the POS: time and error, and the status of a failure only in its details', () => {
    expect(ended({})).toMatchObject({ tone: 'good', more: ['attempt 2', 'took 43 ms'], details: '' });
    const closed = { outcome: 'TryAgain', httpStatus: 503, milliseconds: 15_000, error: 'the POS is closed' };
    expect(ended(closed)).toMatchObject({
      tone: 'warn',
      more: ['attempt 2', 'took 15 s', 'the POS is closed'],
      details: 'HTTP 503',
    });
    expect(ended({ call: 'findOrder', outcome: 'absent' }).sentence).toBe('The POS does not have the order');
    expect(ended({ outcome: 'GiveUp' })).toMatchObject({ tone: 'bad' });
    expect(ended({ outcome: 'NeedsOperator' }).sentence).toBe(
      'The call to the POS did not work: something has to be fixed first',
    );
    expect(ended({ outcome: 'TryAgain', httpStatus: 503, error: 'the POS answered 503' })).toMatchObject({
      more: ['attempt 2', 'took 43 ms', 'The POS answered with an error of its own'],
      details: 'HTTP 503: the POS answered 503',
    });
    const unknown = ended({ outcome: 'unknown', httpStatus: null, milliseconds: null });
    expect(unknown).toMatchObject({ tone: 'bad', more: ['attempt 2'] });
    expect(ended({ outcome: 'TypeError' })).toMatchObject({
      sentence: 'The call failed unexpectedly',
      details: 'TypeError',
    });
  });

  it('a call without an end is shown as under way, or as a call whose process died', () => {
    const open = { attempt: 2, call: 'createOrder' };
    const story = sampleStory();
    story.attempts = story.attempts.map((each) => (each.attempt === 2 ? { ...each, endedAt: null } : each));
    story.placement.underWay = true;
    expect(tell('call began', open, story)).toMatchObject({ tone: 'busy', more: ['attempt 2', 'no answer yet'] });
    story.placement.underWay = false;
    expect(tell('call began', open, story).more[1]).toContain('may have died');
    expect(tell('call began', open).more).toEqual(['attempt 2']);
  });

  it('a webhook shows its outcome and its link', () => {
    const sentences = WEBHOOK_OUTCOMES.map((outcome) => tell('webhook', { ...webhook, outcome }).sentence);
    expect(new Set(sentences).size).toBe(WEBHOOK_OUTCOMES.length);
    const dropped = { ...webhook, outcome: 'dropped', reason: 'not authentic: no signature', events: 3 };
    expect(tell('webhook', dropped)).toEqual({
      sentence: 'A webhook was dropped',
      tone: 'bad',
      more: ['standard', 'dropped', '3 events in it', 'not authentic: no signature'],
      webhookId,
    });
    expect(tell('replay', { ...webhook, replayOf: 'another' }).sentence).toMatch(/^The replay of a webhook/);
  });

  it('a status shows its source, the POS status, the delay and the outcome', () => {
    const at = (occurredAt: string): string[] => reported({ occurredAt }).more;
    const ready = { sentence: 'The POS reported: ready', tone: 'good', more: ['message 3'] };
    expect(reported({})).toMatchObject(ready);
    expect(reported({ nativeStatus: 'BUMPED' }).more[0]).toBe('POS status “BUMPED”');
    const ours = { sentence: 'Expediter set the status: failed', tone: 'bad', more: ['message 3'] };
    expect(reported({ webhookId: null, status: 'failed', nativeStatus: 'not placed' })).toMatchObject(ours);
    expect(at('2027-01-31T17:58:00Z')).toContain("2 min earlier by the POS's clock");
    expect(at('2027-01-31T18:01:05Z')).toContain("1 min later by the POS's clock");
    expect(at('2027-01-31T18:00:04Z').join()).not.toContain('clock');
    const sentences = EVENT_OUTCOMES.map((outcome) => reported({ outcome, sequence: null }).sentence);
    expect(new Set(sentences).size).toBe(EVENT_OUTCOMES.length);
  });

  it('a status shows the reason code, the items and the estimate', () => {
    const why = { reasonCode: 'item_unavailable', itemIds: ['burger', 'cola'] };
    const { more } = reported({ ...why, status: 'failed', estimatedReadyAt: null });
    expect(more.slice(0, 2)).toEqual(['reason: item unavailable', 'items burger, cola']);
    const said = reported({ ...why, itemIds: null, estimatedReadyAt: '2027-01-31T18:30:00Z' }).more;
    expect(said[1]).toMatch(/^ready at \S*30/);
    expect(ended({ outcome: 'GiveUp', reasonCode: 'closed' }).more).toContain('reason: closed');
  });

  it('a conflict is marked as bad, whatever its outcome', () => {
    for (const outcome of EVENT_OUTCOMES) {
      expect(reported({ outcome, conflict: true })).toMatchObject({ tone: 'bad', isConflict: true });
    }
    expect(reported({})).not.toHaveProperty('isConflict');
  });

  it('a live message shows its number, the member state and when it was published', () => {
    const placed = tell('notified', { sequence: 1, memberState: 'placed' });
    expect(placed).toMatchObject({ tone: 'good', more: ['message 1'] });
    expect(tell('notified', { sequence: 2, memberState: 'failed' }).tone).toBe('bad');
    const story = sampleStory();
    story.live.push({
      sequence: 4,
      memberState: 'ready_for_pickup',
      appliedAt: '2027-01-31T18:00:05+00:00',
      publishedAt: null,
      attempts: 3,
    });
    expect(tell('notified', { sequence: 4, memberState: 'ready_for_pickup' }, story)).toMatchObject({
      sentence: 'Member notified: ready for pickup',
      tone: 'warn',
      more: ['message 4', 'not published yet, after 3 tries'],
    });
    story.live.push({ ...story.live.at(-1)!, sequence: 5 });
    expect(tell('notified', { sequence: 5, memberState: 'ready_for_pickup' }, story).sentence).toBe(
      'Member updated, the status stays “ready for pickup”',
    );
    expect(lines.find(({ what }) => what === 'published')?.more).toEqual(['message 1', '12 ms after the change']);
  });

  it('a test order has no member and no platform that signalled it', () => {
    const story = { ...sampleStory(), serviceOrderId: 'certify-0123456789abcdef' };
    const signalled = { at: story.placement.signalledAt, what: 'signalled', details: {} } as const;
    expect(describeHappening(signalled, story).sentence).toBe('An operator placed the test order');
    expect(tell('fetched', {}, story).sentence).toBe('The test order was made');
    expect(tell('notified', { sequence: 1, memberState: 'placed' }, story).sentence).toBe('Platform notified: placed');
  });

  it('a cancellation shows who requested it, the answer of the POS and the outcome', () => {
    expect(tell('cancel requested', { requestedBy: 'operator' }).sentence).toBe(
      'Cancellation requested by an operator',
    );
    const answer = (outcome: string): object => ended({ call: 'cancelOrder', outcome });
    expect(answer('cancelled')).toMatchObject({ sentence: 'The POS cancelled the order', tone: 'good' });
    expect(answer('GiveUp')).toMatchObject({ sentence: 'The POS refused to cancel the order', tone: 'warn' });
    expect(ended({ call: 'cancelOrder', outcome: 'not_asked', milliseconds: 0 })).toMatchObject({
      sentence: 'The order cannot be cancelled through this POS',
      more: [expect.stringMatching(/^attempt /)],
    });
    expect(answer('not_sent')).toMatchObject({ sentence: 'No request was made', tone: 'plain' });
    expect(answer('TryAgain')).toMatchObject({ sentence: 'There was no usable answer' });
    expect(tell('cancel finished', { state: 'refused', problem: 'too late' })).toMatchObject({ more: ['too late'] });
  });

  it('a change of a sent order names the changed fields, not their values', () => {
    const paths = ['notes', 'money.total', 'items.1.modifiers.0.unitPrice'];
    expect(tell('changed', { paths: [] }).sentence).toBe('The platform changed the order back to what was sent');
    expect(tell('changed', { paths }).more).toEqual(['notes', 'money, total', 'item 2, modifier 1, unit price']);
  });

  it('a placement shows its end and the reason', () => {
    expect(tell('placement finished', { state: 'withdrawn', problem: null }).sentence).toBe(
      'Cancelled before it reached the POS',
    );
    const failed = tell('placement finished', { state: 'failed', problem: 'the deadline has passed' });
    expect(failed).toMatchObject({ tone: 'bad', more: ['the deadline has passed'] });
  });
});

describe('an order that an operator cancelled before it reached the POS', () => {
  it('has one line for the cancellation and one for its end', () => {
    const story = withdrawn();
    const told = essentials(storyLines(story), story).map(({ sentence, notified }) => [sentence, notified?.sentence]);
    expect(told.slice(-2)).toEqual([
      ['Grace cancelled the order', undefined],
      ['Cancelled before it reached the POS', 'Member notified: cancelled'],
    ]);
    expect(storyLines(story).length).toBeGreaterThan(told.length);
  });
});

function withdrawn(): ShownOrder {
  const story = sampleStory();
  const at = '2027-01-31T18:00:05+00:00';
  const status = { ...(story.history.find((each) => each.status === 'cancelled') as ShownOrder['history'][number]) };
  const placement = { ...story.placement, state: 'withdrawn' as const, finishedAt: at };
  const cancellation = { ...story.cancellation, requestedBy: 'operator', state: 'cancelled', finishedAt: at };
  const action = { ...story.actions[0], action: 'cancel', outcome: 'done', at };
  const live = story.live.filter(({ memberState }) => ['placed', 'cancelled'].includes(memberState));
  const order = story.order && { ...story.order, erasedAt: null };
  const said = { ...story, order, placement, cancellation, live, attempts: [], webhooks: [], changes: [], posIds: [] };
  const changed = { ...said, actions: [action], history: [{ ...status, webhookId: null, recordedAt: at }] };
  return { ...changed, timeline: orderTimeline(changed as never) } as ShownOrder;
}

describe('the lines of a timeline', () => {
  it('show the time since the previous line, unless both lines have the same moment', () => {
    const waits = storyLines(sampleStory()).map(({ waitMs }) => waitMs);
    expect(waits.slice(0, 6)).toEqual([undefined, 100, undefined, 12, 8, 40]);
  });

  it('have unique keys that do not change when lines are added between them', () => {
    const story = sampleStory();
    const before = storyLines(story).map(({ key }) => key);
    expect(new Set(before).size).toBe(before.length);
    const [first, ...rest] = story.history;
    if (first === undefined) throw new Error('no history');
    // The same status twice in one webhook, and a late one.
    story.history = [first, first, { ...first, recordedAt: '2027-01-31T18:00:03.500000+00:00' }, ...rest];
    story.timeline = orderTimeline(story);
    const after = storyLines(story).map(({ key }) => key);
    expect(new Set(after).size).toBe(before.length + 2);
    expect(after).toEqual(expect.arrayContaining(before));
  });
});

describe('an hour of refusals by a POS', () => {
  const storyOf = (...errors: string[]): ShownOrder => {
    const story = sampleStory();
    const [first] = story.attempts;
    if (first === undefined) throw new Error('no attempt');
    story.attempts = errors.map((error, nth) => {
      const minute = `2027-01-31T19:${String(nth).padStart(2, '0')}`;
      return { ...first, attempt: nth + 1, error, startedAt: `${minute}:01+00:00`, endedAt: `${minute}:02+00:00` };
    });
    story.timeline = orderTimeline(story).filter(({ what }) => what.startsWith('call'));
    return story;
  };
  const fold = (...errors: string[]): string[] =>
    foldTries(storyLines(storyOf(...errors))).map(({ sentence }) => sentence);
  const again = ['The order is sent to the POS', 'There was no usable answer'];

  it('is shown in one line for all attempts with the same answer between the first and the last attempt', () => {
    const busy = Array.from({ length: 20 }, () => 'busy');
    expect(fold(...busy)).toEqual([...again, '18 more tries ended the same way', ...again]);
    expect(fold(...busy, 'closed', ...busy).filter((sentence) => sentence.includes('the same way'))).toHaveLength(2);
    const [, , many] = foldTries(storyLines(storyOf(...busy)));
    expect(many).toMatchObject({ waitMs: 59_000, more: ['within 17 min'] });
  });

  it('is shown in a line for each attempt if there are only a few', () => {
    expect(fold('busy', 'busy', 'busy', 'busy')).toEqual([...again, ...again, ...again, ...again]);
    expect(fold('busy', 'closed', 'busy', 'closed', 'busy', 'closed')).toHaveLength(12);
    expect(foldTries([])).toEqual([]);
  });

  it('keeps the key of its line while attempts are added', () => {
    const keyAfter = (tries: number): string | undefined =>
      foldTries(storyLines(storyOf(...Array.from({ length: tries }, () => 'busy'))))[2]?.key;
    expect(keyAfter(10)).toBe(keyAfter(30));
  });
});

describe('a short timeline', () => {
  const brief = (story = sampleStory()): Essential[] => essentials(foldTries(storyLines(story)), story);

  it('shows only what matters to an operator', () => {
    expect(brief().map(({ sentence, notified }) => [sentence, ...(notified ? [notified.sentence] : [])])).toEqual([
      ['The platform signalled the order', 'Member notified: placed'],
      ['There was no usable answer'],
      ['Grace retried the order'],
      ['The ticket is at the POS', 'Member notified: sent'],
      ['The platform changed the order after it was sent'],
      ['Cancellation requested by the member'],
      ['The order cannot be fetched again: a change or cancel may be missing'],
      ['The restaurant (Kitchen) was notified by e-mail of an order to cancel'],
      ['Kitchen answered: cancelled'],
      ['The POS reported: cancelled', 'Member notified: cancelled'],
      ['The data of the member was erased'],
    ]);
    expect(JSON.stringify(brief())).not.toContain('8F2K');
  });

  it('shows a separate line for a notification that was sent much later than its status', () => {
    const story = sampleStory();
    story.live = story.live.map((each) =>
      each.sequence === 1 ? { ...each, appliedAt: '2027-01-31T18:00:11+00:00' } : each,
    );
    story.timeline = orderTimeline(story);
    expect(brief(story).map(({ sentence }) => sentence)).toContain('Member notified: placed');
  });

  it('marks a live message that is not published yet', () => {
    const story = sampleStory();
    story.live = story.live.map((each) => (each.sequence === 3 ? { ...each, attempts: 4 } : each));
    const told = brief(story).find(({ sentence }) => sentence === 'The POS reported: cancelled')?.notified;
    expect(told).toMatchObject({ tone: 'warn', more: ['not published yet, after 4 tries'] });
  });

  it('shows the POS ids of an order that has several', () => {
    const story = sampleStory();
    story.posIds = [...story.posIds, ...story.posIds.map((each) => ({ ...each, providerOrderId: '9G3L' }))];
    expect(JSON.stringify(brief(story))).toContain('POS id 8F2K');
  });

  it('shows a call to the POS that is in progress', () => {
    const story = sampleStory();
    story.attempts = story.attempts.map((each) => (each.attempt === 2 ? { ...each, endedAt: null } : each));
    story.placement = { ...story.placement, underWay: true, finishedAt: null, state: 'waiting' };
    story.timeline = orderTimeline(story);
    expect(brief(story).map(({ sentence }) => sentence)).toContain('The order is sent to the POS');
  });
});

describe('the timeline of an order that was only signalled', () => {
  it('has one line', () => {
    const story = sampleStory();
    const little: ShownOrder = {
      ...story,
      notices: [],
      placement: { ...story.placement, locationId: null, state: 'waiting', finishedAt: null },
      order: null,
      cancellation: null,
      refreshFailure: null,
      actions: [],
      changes: [],
      attempts: [],
      posIds: [],
      history: [],
      webhooks: [],
      live: [],
    };
    little.timeline = orderTimeline(little);
    expect(storyLines(little)).toMatchObject([{ sentence: 'The platform signalled the order', waitMs: undefined }]);
  });
});

it.each<[string, Partial<ShownOrder>, string]>([
  ['of a failed order', { live: [], actions: retriedFrom('failed') }, 'The order was started again'],
  ['of a skipped order', { live: [], actions: retriedFrom('withdrawn') }, 'The order was started again'],
  ['of a waiting order', { live: [], actions: retriedFrom('waiting') }, 'The platform signalled the order'],
  ['by a signal after a message', { actions: [] }, 'The order was started again'],
])('a retry $0 is described as "$2"', (_what, about, sentence) => {
  expect(tell('signalled', {}, { ...sampleStory(), ...about }).sentence).toBe(sentence);
});

describe('a message to the restaurant', () => {
  const line = (about: Partial<ShownOrder['notices'][number]>): string[] => {
    const story = sampleStory();
    story.notices = story.notices.map((notice) => ({ ...notice, answer: null, answeredAt: null, ...about }));
    story.timeline = orderTimeline(story);
    return storyLines(story).flatMap(({ what, sentence, more, tone }) =>
      what.startsWith('restaurant') ? [sentence, more.join(', '), tone] : [],
    );
  };

  it('that was given up says that somebody has to call', () => {
    const problem = 'the gateway answered 503';
    expect(line({ via: 'webhook', outcome: 'gave_up', problem, contact: null })).toEqual([
      'The restaurant could not be notified by your gateway of an order to cancel: call it',
      'the gateway answered with an error of its own',
      'bad',
    ]);
    expect(line({ outcome: null, endedAt: null, problem })).toEqual([
      'The restaurant (Kitchen) is being notified by e-mail of an order to cancel',
      'the gateway answered with an error of its own',
      'warn',
    ]);
  });

  it('has one line for its answer: the one of the action, which says what was answered', () => {
    const story = sampleStory();
    const [notice] = story.notices;
    const [action] = story.actions;
    if (notice === undefined || action === undefined) throw new Error('the sample has neither');
    const answers = (): string[] =>
      essentials(storyLines(story), story).flatMap(({ sentence }) => (/Kitchen/.test(sentence) ? [sentence] : []));
    expect(answers()).toContain('Kitchen answered: cancelled');
    const by = { kind: 'nobody', id: 'answer link', name: 'contact: Kitchen at Trattoria Nord' } as const;
    const at = notice.answeredAt ?? '';
    const about = { action: 'conclude cancel', before: 'sent/by_phone', after: 'cancelled' };
    story.actions = [{ ...action, ...about, by, at, endedAt: at }];
    story.timeline = orderTimeline(story);
    expect(answers().slice(1)).toEqual(['Kitchen at Trattoria Nord said that the restaurant cancelled the order']);
  });

  it('is not listed if all its orders were settled', () => {
    expect(line({ outcome: 'settled' })).toEqual([]);
  });
});
