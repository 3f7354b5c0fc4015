import { describe, expect, it } from 'vitest';
import { kitchenInShort, saidBy } from '../../console/locations/kitchen.ts';
import {
  firstLength,
  isByPos,
  lengthsOf,
  pauseOf,
  pausedBy,
  problemOf,
  stateOfOrders,
} from '../../console/locations/pause.ts';
import { findLocations } from '../../console/locations/find-locations.ts';
import {
  connectionTone,
  errorShare,
  errorTone,
  failingTone,
  heldOf,
  inOrder,
  isInTrouble,
  lostWith,
  repairOf,
  silence,
  stepShares,
  tokenName,
  trend,
  unreportedOf,
} from '../../console/locations/assess-location.ts';
import { clockTime, dayAndTime } from '../../console/parts/clock-time.ts';
import type { ListedLocation, ShownLocation } from '../../console/wire.ts';

const NOW = Date.parse('2027-01-31T18:00:00Z');
const MINUTE_MS = 60_000;
const ago = (minutes: number): string => new Date(NOW - minutes * MINUTE_MS).toISOString();

const OPEN: ListedLocation['open'] = {
  dropped: 0,
  replayedAt: null,
  unreported: 0,
  unreportedSince: null,
  failing: null,
  held: 0,
};
const location = (locationId: string, about: Partial<ListedLocation> = {}): ListedLocation => ({
  locationId,
  integration: 'standard',
  country: null,
  name: null,
  groups: [],
  timeZone: null,
  paused: false,
  phone: null,
  kitchen: {
    locationId,
    integration: 'standard',
    state: 'open',
    source: 'inferred',
    since: ago(60),
    until: null,
    extraMinutes: null,
    sequence: 0,
    by: null,
    reason: null,
  },
  reconnectNeededAt: null,
  pausedAt: null,
  pausedUntil: null,
  pausedReason: null,
  pausedBy: null,
  address: null,
  backOfficeUrl: null,
  updatedAt: ago(1_000),
  lastSeenAt: ago(1),
  notStored: 0,
  missedAt: null,
  oldToken: null,
  webhooks: Array.from({ length: 12 }, () => 10),
  errors: Array.from({ length: 12 }, () => 0),
  refused: 0,
  open: OPEN,
  ...about,
});

type Token = ShownLocation['tokens'][number];
const token = (tokenId: string, about: Partial<Token> = {}): Token => ({
  tokenId,
  label: null,
  integration: 'standard',
  state: 'valid',
  createdAt: ago(1_000),
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: ago(1),
  ...about,
});

describe('the list of locations', () => {
  const all = [
    location('club-10', { lastSeenAt: null, integration: 'square' }),
    location('Club-9', { pausedAt: ago(5), lastSeenAt: ago(90), name: 'Trattoria', groups: ['brand'] }),
    location('bar', { errors: [1, ...Array.from({ length: 11 }, () => 0)], open: { ...OPEN, dropped: 1 } }),
    location('quiet', { webhooks: Array.from({ length: 12 }, () => 0), lastSeenAt: ago(3_000) }),
  ];
  const found = (filters: Partial<Parameters<typeof findLocations>[1]>): string[] =>
    findLocations(all, { text: '', group: '', integration: '', paused: '', by: '', ...filters }, NOW).map(
      (each) => each.locationId,
    );

  it('begins with locations that were silent for long, then shows paused ones, then those with most errors', () => {
    expect(found({})).toEqual(['quiet', 'Club-9', 'bar', 'club-10']);
  });

  it('can be sorted by name, with club-9 before club-10', () => {
    expect(found({ by: 'name' })).toEqual(['bar', 'Club-9', 'club-10', 'quiet']);
  });

  it.each([
    [{ text: ' CLUB ' }, ['Club-9', 'club-10']],
    [{ text: 'tratt' }, ['Club-9']],
    [{ group: 'brand' }, ['Club-9']],
    [{ integration: 'square' }, ['club-10']],
    [{ paused: 'true' }, ['Club-9']],
    [{ paused: 'false', text: 'club' }, ['club-10']],
    [{ by: 'heard' }, ['club-10', 'quiet', 'Club-9', 'bar']],
    [{ by: 'errors' }, ['bar', 'Club-9', 'club-10', 'quiet']],
    [{ by: 'webhooks' }, ['bar', 'Club-9', 'club-10', 'quiet']],
    [{ by: 'whatever an old link says' }, ['bar', 'Club-9', 'club-10', 'quiet']],
  ])('shows the locations $1 for the parameters $0', (filters, expected) => {
    expect(found(filters)).toEqual(expected);
  });

  it('is a sorted copy, and the loaded list stays as it is', () => {
    const before = all.map((each) => each.locationId);
    found({ by: 'heard' });
    expect(all.map((each) => each.locationId)).toEqual(before);
  });
});

describe('the rating of locations', () => {
  it.each([
    ['whose last webhook came just now is rated plain', ago(0), 'plain'],
    ['whose last webhook came within the hour is rated plain', ago(60), 'plain'],
    ['whose last webhook came more than an hour ago is rated a warning', ago(61), 'warn'],
    ['whose last webhook is older than a day is rated bad', ago(24 * 60 + 1), 'bad'],
    ['that never sent a webhook is rated a warning', null, 'warn'],
  ] as const)('a location %s', (_, lastSeenAt, tone) => {
    expect(silence(lastSeenAt, NOW)).toBe(tone);
  });

  it.each([
    [0, 0, undefined, 'plain'],
    [100, 0, 0, 'plain'],
    [100, 1, 0.01, 'warn'],
    [100, 5, 0.05, 'bad'],
  ] as const)('a location with $1 failed of $0 webhooks is rated $3', (webhooks, errors, share, tone) => {
    const counted = { webhooks: [0, webhooks], errors: [0, errors] };
    expect(errorShare(counted)).toBe(share);
    expect(errorTone({ ...counted, open: { ...OPEN, dropped: errors } })).toBe(tone);
    expect(errorTone({ ...counted, refused: errors })).toBe(tone);
  });

  it('a location is rated by the dropped webhooks that are not replayed, also by those of earlier hours', () => {
    const errors = location('club', { errors: [90] });
    const replayed = { ...OPEN, replayedAt: ago(8) };
    expect(errorTone({ ...errors, open: replayed })).toBe('plain');
    expect(repairOf({ ...errors, open: replayed }, NOW)).toBe(`all replayed ${clockTime(ago(8))}`);
    expect(repairOf({ ...errors, open: { ...replayed, dropped: 1_200 } }, NOW)).toBe('1,200 not replayed');
    expect(repairOf({ ...errors, open: { ...OPEN, replayedAt: ago(61) } }, NOW)).toBe(undefined);
    expect(errorTone({ ...location('club'), open: { ...OPEN, dropped: 40 } })).toBe('bad');
  });

  it('a token is called by its label, else by when it was made, and never by its id', () => {
    expect(tokenName({ label: 'till', createdAt: ago(9) })).toBe('till');
    expect(tokenName({ label: null, createdAt: ago(9) })).toBe(`token of ${dayAndTime(ago(9))}`);
  });

  it('a location that takes orders says how many are on hold, once', () => {
    expect(heldOf({ open: OPEN })).toBeUndefined();
    expect(heldOf({ open: { ...OPEN, held: 1 } })).toBe('1 order on hold');
    expect(heldOf({ open: { ...OPEN, held: 2 } })).toBe('2 orders on hold');
    expect(heldOf({ open: { ...OPEN, held: 2, failing: { orders: 2, cause: null } } })).toBeUndefined();
  });

  it('a case is offered for closing only if something is wrong that nobody has closed', () => {
    const failing = { orders: 1, cause: null };
    const wrong = [{ held: 1 }, { dropped: 1 }, { failing }].map((some) => ({
      closedAt: null,
      open: { ...OPEN, ...some },
    }));
    expect(wrong.map((each) => isInTrouble(each, 0))).toEqual([true, true, true]);
    expect(isInTrouble({ closedAt: null, open: OPEN }, 0)).toBe(false);
    expect(isInTrouble({ closedAt: null, open: OPEN }, 1)).toBe(true);
    expect(isInTrouble({ closedAt: ago(1), open: OPEN }, 1)).toBe(false);
  });

  it('a silent location says since when as the board does: since its oldest ticket without a report', () => {
    const silent = { ...OPEN, unreported: 2, unreportedSince: ago(9) };
    expect(unreportedOf(silent)).toBe(`2 tickets without a report since ${dayAndTime(ago(9))}`);
    expect(unreportedOf({ ...silent, unreported: 1 })).toMatch(/^1 ticket without/);
  });

  it('a location whose errors are all repaired comes after one with an open error or tickets without a report', () => {
    const all = [
      location('a', { errors: [90], open: { ...OPEN, replayedAt: ago(8) } }),
      location('b', { errors: [1], open: { ...OPEN, dropped: 1 } }),
      location('c', { open: { ...OPEN, unreported: 2 } }),
    ];
    const filters = { text: '', group: '', integration: '', paused: '', by: '' };
    expect(findLocations(all, filters, NOW).map(({ locationId }) => locationId)).toEqual(['c', 'b', 'a']);
  });

  it('a location whose POS takes no orders comes before all others, also before one with many open errors', () => {
    const failing = (orders: number) => ({ ...OPEN, failing: { orders, cause: { code: 'pos_refused_us' as const } } });
    const kitchen = { ...location('c').kitchen, state: 'unreachable' as const };
    const all = [
      location('open errors', {
        open: { ...OPEN, dropped: 90, unreported: 9 },
        lastSeenAt: ago(3_000),
        pausedAt: ago(5),
      }),
      location('one failed', { open: failing(1) }),
      location('unreachable', { kitchen }),
      location('refused', { open: failing(2) }),
      location('access ended', { reconnectNeededAt: ago(5) }),
      location('fine'),
    ];
    const filters = { text: '', group: '', integration: '', paused: '', by: '' };
    expect(findLocations(all, filters, NOW).map(({ locationId }) => locationId)).toEqual([
      'refused',
      'access ended',
      'unreachable',
      'open errors',
      'one failed',
      'fine',
    ]);
    expect(all.map(failingTone)).toEqual(['plain', 'warn', 'plain', 'bad', 'plain', 'plain']);
  });

  it('a step without webhooks has a bar of length 0', () => {
    expect(stepShares({ webhooks: [0, 4, 2], errors: [0, 1, 2] })).toEqual([0, 0.25, 1]);
  });

  it.each([
    [[], 'none'],
    [[0, 0], 'none'],
    [[3, 7, 2], 'at most 7, 2 so far in the last'],
  ])('the webhooks per step %j are described as "%s"', (counts, said) => {
    expect(trend(counts)).toBe(said);
  });
});

describe('revoking a token', () => {
  it('warns if this is the only valid token', () => {
    const tokens = [token('a'), token('b', { state: 'expired' }), token('c', { state: 'of another integration' })];
    expect(lostWith('a', tokens, NOW)).toMatch(/only valid token\./);
  });

  it('warns if no other valid token was used in the last seven days', () => {
    const tokens = [token('a'), token('b', { lastUsedAt: null }), token('c', { lastUsedAt: ago(8 * 24 * 60) })];
    expect(lostWith('a', tokens, NOW)).toMatch(/used in the last seven days/);
  });

  it.each([
    ['another token was used as well', 'a', [token('a'), token('b')]],
    [
      'the token was not used in the last seven days',
      'a',
      [token('a', { lastUsedAt: ago(8 * 24 * 60) }), token('b', { lastUsedAt: null })],
    ],
    ['the token is not valid', 'a', [token('a', { state: 'of another integration' }), token('b')]],
  ])('does not warn if %s', (_, tokenId, tokens) => {
    expect(lostWith(tokenId, tokens, NOW)).toBeUndefined();
  });

  it('is offered for valid tokens before invalid ones, and for newer tokens before older ones', () => {
    const tokens = [
      token('old', { state: 'revoked', createdAt: ago(1) }),
      token('first', { createdAt: ago(50) }),
      token('second', { createdAt: ago(5) }),
    ];
    expect(inOrder(tokens).map(({ tokenId }) => tokenId)).toEqual(['second', 'first', 'old']);
  });
});

it.each([
  [-1, 'bad'],
  [0, 'warn'],
  [6, 'warn'],
  [7, 'good'],
])('a connection that lasts %i more days is rated %s', (daysLeft, tone) => {
  expect(connectionTone(daysLeft)).toBe(tone);
});

describe('a pause', () => {
  const at = (instant: string, length: string, timeZone: string | null, reason = '') =>
    pauseOf({ for: length, until: '2027-02-01T22:00' }, reason, { timeZone }, Date.parse(instant));

  it('lasts for the chosen minutes or until somebody ends it, and has the reason that was typed', () => {
    expect(at('2027-01-31T18:00:00Z', '30', null, ' full ')).toEqual({ minutes: 30, reason: 'full' });
    expect(at('2027-01-31T18:00:00Z', '', null)).toEqual({});
  });

  it.each([
    ['2027-01-31T18:00:00Z', 'Europe/Berlin', '2027-02-01T07:00:00Z'],
    // It is eight to the second, whenever it was asked for.
    ['2027-01-31T18:00:40.123Z', 'Europe/Berlin', '2027-02-01T07:00:00Z'],
    ['2027-01-31T23:30:00Z', 'Europe/Berlin', '2027-02-01T07:00:00Z'],
    ['2027-01-31T02:00:00Z', 'America/New_York', '2027-01-31T13:00:00Z'],
    // The clock goes forward in this night.
    ['2027-03-27T20:00:00Z', 'Europe/Berlin', '2027-03-28T06:00:00Z'],
    ['2027-01-31T20:00:00Z', 'Asia/Kathmandu', '2027-02-01T02:15:00Z'],
  ])('that begins at %s and lasts until the morning in %s ends at %s', (now, timeZone, until) => {
    expect(at(now, 'morning', timeZone)).toEqual({ until });
  });

  it('lasts until the entered minute in the time zone of the location', () => {
    expect(at('2027-01-31T18:00:40Z', 'own', 'Europe/Berlin')).toEqual({ until: '2027-02-01T21:00:00Z' });
    expect(at('2027-01-31T18:00:40Z', 'own', 'America/New_York')).toEqual({ until: '2027-02-02T03:00:00Z' });
  });

  it('names the time zone that is meant', () => {
    const names = (...zones: string[]): string[] =>
      lengthsOf(
        zones.map((timeZone) => ({ timeZone })),
        'resumes it',
      ).map(([, name]) => name);
    expect(names('Europe/Berlin')).toContain('until 08:00 in the morning (Europe/Berlin)');
    expect(names('Europe/Berlin', 'UTC')).toContain("until another time (each location's own time)");
  });

  it('that is changed lasts from now', () => {
    const offered = lengthsOf([{ timeZone: 'UTC', pausedAt: ago(40) }], 'resumes it');
    expect(offered).toContainEqual(['120', 'for 2 hours from now']);
  });

  it('has no end in the past at any of the locations', () => {
    const problem = (until: string): string | undefined =>
      problemOf({ for: 'own', until }, [{ timeZone: 'UTC' }, { timeZone: 'Europe/Berlin' }], NOW);
    expect(problem('2027-01-31T19:01')).toBeUndefined();
    expect(problem('2027-01-31T19:00')).toMatch(/^This time is in the past/);
    expect(problem('')).toBe('Enter a day and a time.');
  });

  it('shows who began the pause', () => {
    expect([
      isByPos({ pausedBy: null, pausedUntil: ago(-5) }),
      isByPos({ pausedBy: 'Grace', pausedUntil: null }),
    ]).toEqual([true, false]);
    expect(pausedBy({ pausedBy: 'Grace', pausedUntil: ago(-5) })).toBe('Grace');
    expect(pausedBy({ pausedBy: null, pausedUntil: ago(-5) })).toBe('its POS');
    expect(pausedBy({ pausedBy: null, pausedUntil: null })).toBe('an operator');
  });

  it('is shown instead of lost access to the POS if both apply', () => {
    expect(stateOfOrders(location('a'))).toBe('taking orders');
    expect(stateOfOrders(location('a', { reconnectNeededAt: ago(5) }))).toBe('access ended');
    expect(stateOfOrders(location('a', { reconnectNeededAt: ago(5), pausedAt: ago(3) }))).toBe('paused');
  });

  it('is shown instead of orders that do not reach the POS, which are shown instead of that it takes orders', () => {
    const open = { ...OPEN, failing: { orders: 2, cause: null } };
    expect(stateOfOrders(location('a', { open }))).toBe('failing');
    expect(stateOfOrders(location('a', { open, pausedAt: ago(3) }))).toBe('paused');
  });
});

it('the words for the state of a kitchen name the source of the state', () => {
  expect(kitchenInShort({ state: 'busy', extraMinutes: 20 })).toBe('busy, 20 minutes more');
  expect(kitchenInShort({ state: 'closed', extraMinutes: null })).toBe('closed');
  expect(saidBy({ source: 'operator', state: 'busy', by: 'Grace' })).toBe('as Grace said');
  expect(saidBy({ source: 'operator', state: 'closed', by: null })).toBe('as an operator said');
  expect(saidBy({ source: 'pos', state: 'closed', by: null })).toBe('as its POS reported');
  expect(saidBy({ source: 'inferred', state: 'unreachable', by: null })).toBe(
    'because its POS does not answer, or answers with errors',
  );
});

describe('the length that a dialog begins with', () => {
  const ZONE = { timeZone: 'Europe/Berlin' };

  it('is half an hour for a location that takes orders', () => {
    expect(firstLength([{ ...ZONE, pausedAt: null, pausedUntil: null }], NOW).for).toBe('30');
  });

  it('is that of the pause that is in force', () => {
    const paused = { ...ZONE, pausedAt: ago(10) };
    expect(firstLength([{ ...paused, pausedUntil: '2027-02-01T06:59:01Z' }], NOW)).toEqual({
      for: 'own',
      until: '2027-02-01T08:00',
    });
    expect(firstLength([{ ...paused, pausedUntil: null }], NOW).for).toBe('');
  });
});
