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

const call = {
  attempt: 2,
  call: 'createOrder',
  outcome: 'placed',
  httpStatus: 200,
  milliseconds: 43,
  error: null,
};
const report = {
  status: 'ready',
  nativeStatus: 'READY',
  outcome: 'applied',
  conflict: false,
  sequence: 3,
  providerOrderId: null,
  reason: null,
  webhookId: '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33',
  occurredAt: null,
};
const webhook = {
  webhookId: '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33',
  receivedAt: '2027-01-31T18:00:05+00:00',
  integration: 'standard',
  outcome: 'applied',
  events: 1,
  reason: null,
  replayOf: null,
};

describe('a happening is told in words', () => {
  const story = sampleStory();
  const lines = storyLines(story);

  it('each kind of them, one sentence that says more than its name', () => {
    expect(new Set(story.timeline.map(({ what }) => what))).toEqual(new Set(HAPPENINGS));
    for (const line of lines) {
      expect(line.sentence).not.toBe(line.what);
      expect(line.sentence).toMatch(/^[A-Z][^.]{8,}[^.]$/);
      expect(`${line.sentence} ${line.more.join(' ')}`).not.toMatch(/undefined|null|NaN|\[object/);
    }
  });

  it('as an operator reads it, from the signal to the end', () => {
    expect(lines.map(({ sentence }) => sentence)).toEqual([
      'The platform signalled the order',
      'It was fetched from the platform',
      'The member is told: placed',
      'The update went out to the platform',
      'The POS is asked to take the order',
      'There was no usable answer',
      'Grace tried it again',
      'The POS is asked to take the order',
      'The POS has the order',
      'The member is told: sent',
      'The ticket is at the POS: it is placed',
      'The update went out to the platform',
      'The platform changed it after it was sent',
      'Its member cancelled it',
      'The POS is asked to cancel it',
      'The POS will say whether it cancels it',
      'A webhook moved the order',
      'The POS says: cancelled',
      'The member is told: cancelled',
      'It is cancelled',
      'The order has ended',
      'The replay of a webhook said what was known already',
      'The POS says: cancelled, which we knew',
      'All that told of its member was erased',
    ]);
  });

  it('a call says what the POS answered: HTTP status, time and error', () => {
    expect(tell('call ended', call)).toMatchObject({
      tone: 'good',
      more: ['attempt 2', 'HTTP 200', 'took 43 ms'],
    });
    expect(
      tell('call ended', {
        ...call,
        outcome: 'TryAgain',
        httpStatus: 503,
        milliseconds: 15_000,
        error: 'the POS is closed',
      }),
    ).toMatchObject({ tone: 'warn', more: ['attempt 2', 'HTTP 503', 'took 15 s', 'the POS is closed'] });
    expect(tell('call ended', { ...call, call: 'findOrder', outcome: 'absent', httpStatus: null }).sentence).toBe(
      'The POS does not have the order',
    );
    expect(tell('call ended', { ...call, outcome: 'GiveUp' })).toMatchObject({ tone: 'bad' });
    expect(tell('call ended', { ...call, outcome: 'NeedsOperator' }).sentence).toContain('mends');
    expect(tell('call ended', { ...call, outcome: 'unknown', httpStatus: null, milliseconds: null })).toMatchObject({
      tone: 'bad',
      more: ['attempt 2'],
    });
    expect(tell('call ended', { ...call, outcome: 'TypeError' }).sentence).toContain('TypeError');
  });

  it('a call without an end is under way, or its process died', () => {
    const open = { attempt: 2, call: 'createOrder' };
    const story = sampleStory();
    story.attempts = story.attempts.map((each) => (each.attempt === 2 ? { ...each, endedAt: null } : each));
    story.placement.underWay = true;
    expect(tell('call began', open, story)).toMatchObject({ tone: 'busy', more: ['attempt 2', 'no answer yet'] });
    story.placement.underWay = false;
    expect(tell('call began', open, story).more[1]).toContain('may have died');
    expect(tell('call began', open).more).toEqual(['attempt 2']);
  });

  it('a webhook says what became of it, and leads to the webhook', () => {
    const sentences = WEBHOOK_OUTCOMES.map((outcome) => tell('webhook', { ...webhook, outcome }).sentence);
    expect(new Set(sentences).size).toBe(WEBHOOK_OUTCOMES.length);
    expect(
      tell('webhook', { ...webhook, outcome: 'dropped', reason: 'not authentic: no signature', events: 3 }),
    ).toEqual({
      sentence: 'A webhook was dropped',
      tone: 'bad',
      more: ['standard', 'dropped', '3 events in it', 'not authentic: no signature'],
      webhookId: webhook.webhookId,
    });
    expect(tell('replay', { ...webhook, replayOf: 'another' }).sentence).toMatch(/^The replay of a webhook/);
  });

  it('a status says who said it, in which words, how late, and what came of it', () => {
    const at = (occurredAt: string): string[] => tell('status', { ...report, occurredAt }).more;
    expect(tell('status', report)).toMatchObject({
      sentence: 'The POS says: ready',
      tone: 'good',
      more: ['message 3'],
    });
    expect(tell('status', { ...report, nativeStatus: 'BUMPED' }).more[0]).toBe('in its words “BUMPED”');
    expect(tell('status', { ...report, webhookId: null, status: 'failed', nativeStatus: 'not placed' })).toMatchObject({
      sentence: 'We say: failed',
      tone: 'bad',
      more: ['message 3'],
    });
    expect(at('2027-01-31T17:58:00Z')).toContain("2 min earlier by the POS's clock");
    expect(at('2027-01-31T18:01:05Z')).toContain("1 min later by the POS's clock");
    expect(at('2027-01-31T18:00:04Z').join()).not.toContain('clock');
    const sentences = EVENT_OUTCOMES.map((outcome) => tell('status', { ...report, outcome, sequence: null }).sentence);
    expect(new Set(sentences).size).toBe(EVENT_OUTCOMES.length);
  });

  it('a status says why, as a code with the items, and when it will be ready', () => {
    const why = { reasonCode: 'item_unavailable', itemIds: ['burger', 'cola'] };
    const { more } = tell('status', { ...report, ...why, status: 'failed', estimatedReadyAt: null });
    expect(more.slice(0, 2)).toEqual(['why: item unavailable', 'items burger, cola']);
    const said = tell('status', { ...report, ...why, itemIds: null, estimatedReadyAt: '2027-01-31T18:30:00Z' }).more;
    expect(said[1]).toMatch(/^ready at \S*30/);
    expect(tell('call ended', { ...call, outcome: 'GiveUp', reasonCode: 'closed' }).more).toContain('why: closed');
  });

  it('a conflict stands out, whatever its outcome', () => {
    for (const outcome of EVENT_OUTCOMES) {
      expect(tell('status', { ...report, outcome, conflict: true })).toMatchObject({ tone: 'bad', isConflict: true });
    }
    expect(tell('status', report)).not.toHaveProperty('isConflict');
  });

  it('a live message says its number, what the member sees, and when it went out', () => {
    expect(tell('told', { sequence: 1, memberState: 'placed' })).toMatchObject({ tone: 'good', more: ['message 1'] });
    expect(tell('told', { sequence: 2, memberState: 'failed' }).tone).toBe('bad');
    const story = sampleStory();
    story.live.push({
      sequence: 4,
      memberState: 'ready_for_pickup',
      appliedAt: '2027-01-31T18:00:05+00:00',
      publishedAt: null,
      attempts: 3,
    });
    expect(tell('told', { sequence: 4, memberState: 'ready_for_pickup' }, story)).toMatchObject({
      sentence: 'The member is told: ready for pickup',
      tone: 'warn',
      more: ['message 4', 'it has not gone out yet, after 3 tries'],
    });
    expect(lines.find(({ what }) => what === 'published')?.more).toEqual(['message 1', '12 ms after it was told']);
  });

  it('a cancel says who asked for it, what the POS answered, and what came of it', () => {
    expect(tell('cancel asked', { requestedBy: 'operator' }).sentence).toBe('An operator had it cancelled');
    const answer = (outcome: string): object => tell('call ended', { ...call, call: 'cancelOrder', outcome });
    expect(answer('cancelled')).toMatchObject({ sentence: 'The POS cancels it', tone: 'good' });
    expect(answer('GiveUp')).toMatchObject({ sentence: 'The POS refuses to cancel it', tone: 'warn' });
    expect(answer('not_asked')).toMatchObject({ sentence: 'The POS cannot be asked to cancel it', tone: 'warn' });
    expect(answer('TryAgain')).toMatchObject({ sentence: 'There was no usable answer' });
    expect(tell('cancel finished', { state: 'refused', problem: 'too late' })).toMatchObject({ more: ['too late'] });
  });

  it('a change after it was sent names the fields in words, not their values', () => {
    const paths = ['notes', 'money.total', 'items.1.modifiers.0.unitPrice'];
    expect(tell('changed', { paths: [] }).sentence).toBe('The platform has it as it was sent again');
    expect(tell('changed', { paths }).more).toEqual(['notes', 'money, total', 'item 2, modifier 1, unit price']);
  });

  it('a placement says how it finished, and why in vain', () => {
    expect(tell('placement finished', { state: 'withdrawn', problem: null }).sentence).toContain('before it was sent');
    expect(tell('placement finished', { state: 'failed', problem: 'the deadline has passed' })).toMatchObject({
      tone: 'bad',
      more: ['the deadline has passed'],
    });
  });
});

describe('the story is a list of lines', () => {
  it('with the wait before each, but for what is of the same moment', () => {
    const waits = storyLines(sampleStory()).map(({ waitMs }) => waitMs);
    expect(waits.slice(0, 6)).toEqual([undefined, 100, undefined, 12, 8, 40]);
  });

  it('each with a key of its own, that stays when more happens in between', () => {
    const story = sampleStory();
    const before = storyLines(story).map(({ key }) => key);
    expect(new Set(before).size).toBe(before.length);
    const [first, ...rest] = story.history;
    if (first === undefined) throw new Error('no history');
    // The same status twice in one webhook, and one that came in late.
    story.history = [first, first, { ...first, recordedAt: '2027-01-31T18:00:03.500000+00:00' }, ...rest];
    story.timeline = orderTimeline(story);
    const after = storyLines(story).map(({ key }) => key);
    expect(new Set(after).size).toBe(before.length + 2);
    expect(after).toEqual(expect.arrayContaining(before));
  });
});

describe('a POS that refuses us for an hour', () => {
  const storyOf = (...errors: string[]): ShownOrder => {
    const story = sampleStory();
    const [first] = story.attempts;
    if (first === undefined) throw new Error('no attempt');
    const time = (nth: number, second: number): string =>
      `2027-01-31T19:${String(nth).padStart(2, '0')}:0${second}.000000+00:00`;
    story.attempts = errors.map((error, nth) => ({
      ...first,
      attempt: nth + 1,
      error,
      startedAt: time(nth, 1),
      endedAt: time(nth, 2),
    }));
    story.timeline = orderTimeline(story).filter(({ what }) => what.startsWith('call'));
    return story;
  };
  const fold = (...errors: string[]): string[] =>
    foldTries(storyLines(storyOf(...errors))).map(({ sentence }) => sentence);
  const again = ['The POS is asked to take the order', 'There was no usable answer'];

  it('is one line between its first and its last try, until it answers something else', () => {
    const busy = Array.from({ length: 20 }, () => 'busy');
    expect(fold(...busy)).toEqual([...again, '18 more tries ended alike', ...again]);
    expect(fold(...busy, 'closed', ...busy).filter((sentence) => sentence.includes('alike'))).toHaveLength(2);
    const [, , many] = foldTries(storyLines(storyOf(...busy)));
    expect(many).toMatchObject({ waitMs: 59_000, more: ['within 17 min'] });
  });

  it('is told in full while there are few', () => {
    expect(fold('busy', 'busy', 'busy', 'busy')).toEqual([...again, ...again, ...again, ...again]);
    expect(fold('busy', 'closed', 'busy', 'closed', 'busy', 'closed')).toHaveLength(12);
    expect(foldTries([])).toEqual([]);
  });

  it('keeps its line while it grows', () => {
    const keyAfter = (tries: number): string | undefined =>
      foldTries(storyLines(storyOf(...Array.from({ length: tries }, () => 'busy'))))[2]?.key;
    expect(keyAfter(10)).toBe(keyAfter(30));
  });
});

describe('in short', () => {
  const brief = (story = sampleStory()): Essential[] => essentials(foldTries(storyLines(story)), story);

  it('it is what became of the order, and how we did it is left out', () => {
    expect(brief().map(({ sentence, told }) => [sentence, ...(told ? [told.sentence] : [])])).toEqual([
      ['The platform signalled the order', 'The member is told: placed'],
      ['There was no usable answer'],
      ['Grace tried it again'],
      ['The ticket is at the POS: it is placed', 'The member is told: sent'],
      ['The platform changed it after it was sent'],
      ['Its member cancelled it'],
      ['The POS says: cancelled', 'The member is told: cancelled'],
      ['The order has ended'],
      ['All that told of its member was erased'],
    ]);
    expect(JSON.stringify(brief())).not.toContain('8F2K');
  });

  it('what the member was told much later, or without a status, is a line of its own', () => {
    const story = sampleStory();
    story.live = story.live.map((each) =>
      each.sequence === 1 ? { ...each, appliedAt: '2027-01-31T18:00:11+00:00' } : each,
    );
    story.timeline = orderTimeline(story);
    expect(brief(story).map(({ sentence }) => sentence)).toContain('The member is told: placed');
  });

  it('a message that does not go out is not folded away', () => {
    const story = sampleStory();
    story.live = story.live.map((each) => (each.sequence === 3 ? { ...each, attempts: 4 } : each));
    const told = brief(story).find(({ sentence }) => sentence === 'The POS says: cancelled')?.told;
    expect(told).toMatchObject({ tone: 'warn', more: ['it has not gone out yet, after 4 tries'] });
  });

  it('of several POS ids each is said where it came from', () => {
    const story = sampleStory();
    story.posIds = [...story.posIds, ...story.posIds.map((each) => ({ ...each, providerOrderId: '9G3L' }))];
    expect(JSON.stringify(brief(story))).toContain('POS id 8F2K');
  });

  it('a call under way is told', () => {
    const story = sampleStory();
    story.attempts = story.attempts.map((each) => (each.attempt === 2 ? { ...each, endedAt: null } : each));
    story.placement = { ...story.placement, underWay: true, finishedAt: null, state: 'waiting' };
    story.timeline = orderTimeline(story);
    expect(brief(story).map(({ sentence }) => sentence)).toContain('The POS is asked to take the order');
  });
});

describe('a story that holds little', () => {
  it('is told all the same', () => {
    const { placement, serviceOrderId, traceId } = sampleStory();
    const little: ShownOrder = {
      serviceOrderId,
      told: 'Its member was told nothing.',
      memberWatching: false,
      traceId,
      placement: { ...placement, locationId: null, state: 'waiting', finishedAt: null },
      order: null,
      cancellation: null,
      actions: [],
      changes: [],
      attempts: [],
      posIds: [],
      history: [],
      webhooks: [],
      droppedSince: 0,
      live: [],
      timeline: [],
    };
    little.timeline = orderTimeline(little);
    expect(storyLines(little)).toMatchObject([{ sentence: 'The platform signalled the order', waitMs: undefined }]);
  });
});
