import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ACT_CODES, describeAction } from '../../src/core/domain/describe-action.ts';
import { groupActions, timesOf } from '../../console/audit/group-actions.ts';
import { timesInWords } from '../../src/core/domain/explain-failure.ts';
import { browserOf } from '../../console/people/browser-of.ts';
import { eachOnce, rightInWords } from '../../console/people/right-in-words.ts';
import { rightOf, type Draft } from '../../console/people/right-of.ts';
import type { RecordedAction } from '../../console/wire.ts';
import { machineWordsIn } from '../system/machine-words.ts';
import { ACCESS } from '../../src/operators/registry.ts';
import { saidBy } from '../../console/locations/kitchen.ts';
import { pausedBy } from '../../console/locations/pause.ts';

const action: RecordedAction = {
  auditId: '7',
  at: '2027-01-31T18:00:01+00:00',
  by: { kind: 'person', id: 'https://issuer.example.com 7', name: 'Grace' },
  action: 'retry',
  locationId: 'club-1',
  serviceOrderId: 'order-4711',
  callOutCode: null,
  webhookId: null,
  subject: null,
  before: 'held',
  outcome: 'done',
  after: 'sent',
  endedAt: null,
};

describe('an action', () => {
  it('shows who did what, and the result', () => {
    expect(describeAction(action)).toEqual({
      sentence: 'Grace retried the order',
      tone: 'plain',
      more: ['held → sent'],
      details: null,
      isChange: true,
    });
  });

  it('names who has the shared token in words, not by its variable', () => {
    const by = { kind: 'operator_token', id: 'operator_token', name: 'OPERATOR_TOKEN' } as const;
    const took = { ...action, action: 'take case', before: 'OPERATOR_TOKEN' };
    expect([
      describeAction({ ...action, by }).sentence,
      describeAction({ ...took, after: action.by.name }).sentence,
      describeAction({ ...took, before: 'nobody', after: 'OPERATOR_TOKEN' }).sentence,
      describeAction({ ...took, action: 'close case' }).more.join(),
      pausedBy({ pausedBy: 'OPERATOR_TOKEN', pausedUntil: null }),
      saidBy({ source: 'operator', state: 'busy', by: 'OPERATOR_TOKEN' }),
    ]).toEqual([
      'Shared operator token retried the order',
      'Grace took the case over from Shared operator token',
      'Grace handed the case over to Shared operator token',
      'Shared operator token had it',
      'Shared operator token',
      'as Shared operator token said',
    ]);
  });

  it('has words for every action of a route', () => {
    const named = Object.values(ACCESS).flatMap(({ does, reveals }) => [does ?? [], reveals?.action ?? []].flat());
    expect(named.filter((action) => !ACT_CODES.includes(action))).toEqual([]);
  });

  it('has words for every action that the code records without a route', () => {
    const recorded = globSync('src/**/*.ts').flatMap((file) => {
      const text = readFileSync(file, 'utf8');
      if (!/\b(audited|recordAction|recordAt\w+|recordGiven)\(/.test(text)) return [];
      return [
        ...text.matchAll(
          /(?:action|late|failed|in_doubt|cancel_by_phone|changed): '([a-z ]+)'|recorded\([\w.]+, \w+, \w+, '([a-z ]+)'/g,
        ),
      ].map(([, one, other]) => one ?? other ?? '');
    });
    expect(recorded.length).toBeGreaterThan(20);
    expect(recorded.filter((action) => !ACT_CODES.includes(action))).toEqual([]);
  });

  it('that the console does not know is shown by its code', () => {
    expect(describeAction({ ...action, action: 'bake' }).sentence).toBe('Grace did “bake”');
  });

  it.each<[string, Partial<RecordedAction>, string]>([
    [
      'a secret that was changed',
      { action: 'change', before: '{"settings.secret":"set"}', after: '{"settings.secret":"changed"}' },
      'Grace changed the location · Secret: changed',
    ],
    [
      'a new location',
      {
        action: 'put',
        before: '{"integration":null,"name":null,"settings.secret":null}',
        after: '{"integration":"acme","name":"Nord","settings.secret":"set"}',
      },
      'Grace added the location · POS: acme · Name: Nord · Secret: set',
    ],
    [
      'a location that was put again',
      { action: 'put', before: '{"name":null}', after: '{"name":"Nord"}' },
      'Grace saved the location · Name: Nord',
    ],
    ['a change of nothing', { action: 'put', before: '{}', after: '{}' }, 'Grace saved the location · nothing changed'],
    [
      'an adopted application',
      { action: 'change', before: null, after: '{"settings.application":"acme-us"}' },
      'Grace changed the location · Application: acme-us',
    ],
    [
      'an application',
      { action: 'put application', subject: 'acme-us', before: null, after: 'changed clientId, clientSecret' },
      'Grace saved the vendor application acme-us · changed: Client ID, Client secret',
    ],
    ['a case that was taken', { action: 'take case', before: 'nobody', after: 'Grace' }, 'Grace took the case'],
    [
      'a case that was taken over',
      { action: 'take case', before: 'Ada', after: 'Grace' },
      'Grace took the case over from Ada',
    ],
    [
      'a case that was handed over',
      { action: 'take case', before: 'Grace', after: 'Ada' },
      'Grace handed the case over to Ada',
    ],
    [
      "somebody else's case that was handed over",
      { action: 'take case', before: 'Alan', after: 'Ada' },
      'Grace handed the case over to Ada, Alan had it',
    ],
    ['a closed case', { action: 'close case', before: 'Ada', after: 'nobody' }, 'Grace closed the case · Ada had it'],
    [
      'a snoozed alarm',
      { action: 'snooze', before: 'held', after: '2027-01-31T18:30:01+00:00' },
      'Grace snoozed the alarm for 30 minutes',
    ],
    [
      'an alarm snoozed for a moment',
      { action: 'snooze', before: 'held', after: '2027-01-31T18:01:01+00:00' },
      'Grace snoozed the alarm for 1 minute',
    ],
    [
      'an alarm that is shown again',
      { action: 'snooze', before: 'held', after: 'shown' },
      'Grace showed the alarm again',
    ],
    [
      'a ticket that is there',
      { action: 'resolve', before: 'in_doubt', after: 'sent' },
      'Grace said that the ticket is at the POS',
    ],
    [
      'a ticket that is not there',
      { action: 'resolve', before: 'in_doubt', after: 'waiting' },
      'Grace said that the ticket is not at the POS',
    ],
    [
      'a cancel by telephone',
      { action: 'conclude cancel', before: 'sent/by_phone', after: 'sent/cancelled' },
      'Grace said that the restaurant cancelled the order',
    ],
    [
      'a cancel that came too late',
      { action: 'conclude cancel', before: 'sent/by_phone', after: 'sent/refused' },
      'Grace said that the restaurant makes the order anyway',
    ],
    [
      'an answer about a change',
      { action: 'answer change', after: 'too_late' },
      'Grace said that it is too late for the change',
    ],
    [
      'a cancel',
      { action: 'cancel', before: 'in_doubt', after: 'in_doubt/by_phone' },
      'Grace cancelled the order · cancellation by phone',
    ],
    [
      'a busy kitchen',
      { action: 'make busy', before: 'open', after: '20 minutes' },
      'Grace made the kitchen busy · 20 minutes more for each order',
    ],
    [
      'a kitchen that is busy for a time',
      { action: 'make busy', before: 'open', after: '20 minutes for 60 minutes: One cook is ill.' },
      'Grace made the kitchen busy · 20 minutes more for each order · for 1 hour · One cook is ill.',
    ],
    ['a pause', { action: 'pause', before: 'open', after: 'paused' }, 'Grace paused the location'],
    [
      'a pause with an end and a reason',
      { action: 'pause', before: 'open', after: 'paused until 2027-01-31T18:30:00.000Z: Oven: broken' },
      `Grace paused the location · until ${timesInWords('2027-01-31T18:30:00Z')} · Oven: broken`,
    ],
    [
      'a pause that was changed',
      { action: 'pause', before: 'paused', after: 'paused for 30 minutes' },
      'Grace changed the pause of the location · for 30 minutes',
    ],
    [
      'a pause of two hours',
      { action: 'pause', before: 'open', after: 'paused for 120 minutes: The oven is broken.' },
      'Grace paused the location · for 2 hours · The oven is broken.',
    ],
    [
      'a cancel of an order that is at the POS',
      { action: 'cancel', before: 'sent', after: 'sent/due' },
      'Grace cancelled the order · cancellation due',
    ],
    [
      'a location in a country',
      { action: 'change', before: '{"country":"AT"}', after: '{"country":"DE"}' },
      'Grace changed the location · Country: Austria → Germany',
    ],
    [
      'given roles',
      {
        action: 'give roles',
        before: null,
        after: '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11 ada@example.com: viewer,operator at club-1,club-2',
      },
      'Grace gave roles · ada@example.com: viewer, operator at club-1, club-2',
    ],
    ['a replay', { action: 'replay', before: null, after: 'applied' }, 'Grace replayed a webhook · applied'],
    [
      'a member search',
      { action: 'search member', before: null, after: 'orders 3' },
      'Grace searched the orders of a member · 3 of them here',
    ],
  ])('%s is a sentence', (_what, about, words) => {
    const { sentence, more } = describeAction({ ...action, ...about });
    expect([sentence, ...more].join(' · ')).toBe(words);
  });

  it("of a contact of a restaurant has the contact's name", () => {
    const by = { kind: 'nobody', id: 'answer link', name: 'contact: Paolo at Trattoria Nord' } as const;
    const { sentence } = describeAction({ ...action, by, action: 'resolve', before: 'in_doubt', after: 'not_there' });
    expect(sentence).toBe('Paolo at Trattoria Nord said that the ticket is not at the POS');
  });

  it('of any kind, with any stored text and end, has words without codes, and a technician finds what is stored', () => {
    const texts = [
      null,
      '',
      '{}',
      '{"settings.itemMap":"{\\"a\\":\\"b…"}',
      '{"settings.ordersUrl":null,"groups":"[\\"nord\\"]"}',
      'in_doubt/by_phone',
      'too_late',
    ];
    const subject = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11';
    // What these store are names of people, tokens and groups.
    const named = ['take case', 'close case', 'issue token', 'revoke token', 'give roles', 'take roles'];
    const shown = ACT_CODES.filter((code) => !named.includes(code)).flatMap((code) =>
      [null, 'done', 'refused', 'failed'].flatMap((outcome) =>
        texts.flatMap((before) =>
          texts.map((after) =>
            describeAction({
              ...action,
              action: code,
              outcome,
              before,
              after,
              subject,
            }),
          ),
        ),
      ),
    );
    expect(machineWordsIn(shown.flatMap(({ sentence, more }) => [sentence, ...more]))).toEqual([]);
    expect(
      shown.filter(({ sentence, more }) => [sentence, ...more].some((each) => each === '' || each.endsWith(': '))),
    ).toEqual([]);
    expect(shown.filter(({ details }) => !details?.includes(subject))).toEqual([]);
  });

  it('that was refused is shown as refused', () => {
    const refused = describeAction({ ...action, outcome: 'refused', after: null });
    expect(refused).toMatchObject({ sentence: 'Grace was refused: retry an order', tone: 'warn', isChange: false });
    const { sentence } = describeAction({ ...action, action: 'be refused', outcome: 'refused', after: null });
    expect(sentence).toBe('Grace was refused');
  });

  it('says that its end is not known if no end is recorded', () => {
    expect(describeAction({ ...action, outcome: null, after: null }).more).toEqual(['how it ended is not known']);
    expect(describeAction({ ...action, outcome: 'failed', after: null })).toMatchObject({
      tone: 'bad',
      more: ['it failed'],
    });
  });

  it('shows whether it came by a token or by the command line', () => {
    const by = (kind: RecordedAction['by']['kind'], name: string): string =>
      describeAction({ ...action, by: { kind, id: 'x', name } }).sentence;
    expect(by('token', 'nightly')).toBe('nightly (token) retried the order');
    expect(by('command_line', 'ops')).toBe('ops (command line) retried the order');
    expect(by('nobody', 'nobody')).toBe('An anonymous caller retried the order');
  });

  it('that only reads is not shown as a change', () => {
    expect(describeAction({ ...action, action: 'read contents' }).isChange).toBe(false);
  });
});

describe('a list of actions', () => {
  const grouped = (...actions: Partial<RecordedAction>[]): string[] =>
    groupActions(actions.map((each, nth) => ({ ...action, auditId: String(nth), ...each }))).map((group) =>
      group.map(({ auditId }) => auditId).join(' '),
    );
  const at = (second: number): string => new Date(Date.parse(action.at) - second * 1_000).toISOString();

  it('shows one line for equal actions of one person within a minute of each other', () => {
    const ada = { ...action.by, id: 'ada' };
    expect(grouped({ at: at(0) }, { at: at(60) }, { at: at(120) }, { at: at(181) })).toEqual(['0 1 2', '3']);
    expect(grouped({}, { by: ada }, {})).toEqual(['0', '1', '2']);
    expect(grouped({ action: 'cancel' }, { action: 'retry' }, { action: 'cancel' })).toEqual(['0', '1', '2']);
  });

  it('keeps actions apart that did different things', () => {
    const handed = (after: string) => ({ action: 'take case', before: 'Grace', after });
    expect(grouped(handed('Ada'), handed('Alan'), handed('Alan'))).toEqual(['0', '1 2']);
  });

  it('counts an action at several locations once', () => {
    const placed = (second: number, locationId: string) => ({ ...action, at: at(second), locationId });
    expect(timesOf([placed(0, 'club-1'), placed(5, 'club-2'), placed(5, 'club-1')])).toBe(2);
  });

  it('counts what one request did once, also if it is recorded as a whole and then at each location', () => {
    const given = (second: number, requestId: string) => ({
      ...action,
      action: 'give roles',
      at: at(second),
      requestId,
    });
    expect(timesOf([given(0, 'a'), given(1, 'a'), given(3, 'b'), given(3, 'b')])).toBe(2);
  });

  it('counts a search of a member once, not for each location of the orders found', () => {
    const search = (second: number, after: string) => ({ ...action, action: 'search member', at: at(second), after });
    expect(timesOf([search(0, 'orders 1'), search(1, 'found 3'), search(2, 'found 0'), search(3, 'orders 2')])).toBe(2);
    expect(timesOf([search(0, 'orders 1'), search(0, 'orders 2'), search(2, 'orders 1')]), 'at some locations').toBe(2);
  });

  it('does not count a replay of many as one of its replays', () => {
    const replay = { ...action, action: 'replay', requestId: 'a' };
    expect(timesOf([replay, { ...replay, at: at(1) }, { ...replay, action: 'replay many', at: at(2) }])).toBe(2);
  });

  it('shows the end of a replay of many as a clock shows it', () => {
    const subject = 'dropped, until 2026-11-30T18:00:00.000Z';
    const [said] = describeAction({ ...action, action: 'replay many', subject, after: 'found 3' }).more;
    expect(said).toMatch(/^dropped, until (?!.*[TZ])/);
  });

  it('shows one line for a replay of many webhooks', () => {
    expect(grouped({ action: 'replay' }, { action: 'replay' }, { action: 'replay many' })).toEqual(['0 1 2']);
  });
});

describe('a browser', () => {
  it.each([
    [
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36',
      'Chrome on Linux',
    ],
    [
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0',
      'Edge on Windows',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile Safari/604.1',
      'Safari on iPhone',
    ],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:143.0) Gecko/20100101 Firefox/143.0', 'Firefox on Mac'],
    ['curl/8.1', 'curl/8.1'],
  ])('whose user agent is "%s" is shown as "%s"', (userAgent, name) => {
    expect(browserOf(userAgent)).toBe(name);
  });

  it('is shown as "A browser" if it sends no user agent', () => {
    expect(browserOf(null)).toBe('A browser');
  });
});

describe('the roles that a form gives', () => {
  const draft: Draft = { roles: [], where: 'some', locations: [], groups: [] };

  it('are empty until locations or groups are chosen', () => {
    expect(rightOf({ ...draft, roles: ['admin'], where: '', locations: ['club-1'] })).toBeUndefined();
    expect(rightOf({ ...draft, roles: ['admin'] })).toBeUndefined();
  });

  it('apply to the chosen locations and groups', () => {
    expect(rightOf({ ...draft, roles: [], locations: ['club-1', 'club, two'], groups: ['brand'] })).toEqual({
      roles: ['viewer'],
      locations: ['club-1', 'club, two'],
      locationGroups: ['brand'],
    });
    expect(rightOf({ ...draft, roles: ['operator'], where: 'all', locations: ['club-1'], groups: ['brand'] })).toEqual({
      roles: ['viewer', 'operator'],
      locations: null,
      locationGroups: [],
    });
  });

  it('include viewer, except for an integrator without other roles', () => {
    expect(rightOf({ ...draft, roles: ['integrator'], locations: ['club-1'] })?.roles).toEqual(['integrator']);
    expect(rightOf({ ...draft, roles: ['integrator', 'admin'], locations: ['club-1'] })?.roles).toContain('viewer');
  });

  it.each([
    ['viewer at club-1,club-2', 'viewer at Harbour club-1, Harbour club-2'],
    ['viewer,admin at club-1 and the groups nord', 'viewer, admin at Harbour club-1 and the groups nord'],
    ['viewer at the groups nord,süd', 'viewer at the groups nord, süd'],
    ['viewer at all locations', 'viewer at all locations'],
    ['Ada at home: viewer at club-1', 'Ada at home: viewer at Harbour club-1'],
  ])('are shown in the audit with the names of locations: %s', (stored, shown) => {
    const names = { vendor: String, location: (id: string) => `Harbour ${id}` };
    const act = {
      ...action,
      action: 'give roles',
      before: null,
      after: `0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11 a: ${stored}`,
    };
    expect(describeAction(act, names).more).toEqual([`a: ${shown}`]);
  });

  it('are shown with their locations and groups', () => {
    const right = { roles: ['viewer', 'integrator'] as const, locations: ['club-1'], locationGroups: ['brand'] };
    expect(rightInWords({ ...right, roles: [...right.roles] })).toBe('integrator at club-1, all of group brand');
  });

  it('that read the same are listed once, and taken away together', () => {
    const all = { group: null, locations: null, locationGroups: [], createdAt: action.at };
    const listed = eachOnce([
      { ...all, grantId: '1', email: 'ada@example.com', roles: ['operator'] },
      { ...all, grantId: '2', email: 'ben@example.com', roles: ['operator'] },
      { ...all, grantId: '3', email: 'ada@example.com', roles: ['viewer', 'operator'] },
    ]);
    expect(listed.map(({ email, grantIds }) => [email, grantIds])).toEqual([
      ['ada@example.com', ['1', '3']],
      ['ben@example.com', ['2']],
    ]);
  });
});
