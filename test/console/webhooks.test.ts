import { describe, expect, it } from 'vitest';
import { bytesInWords } from '../../console/webhooks/bytes-in-words.ts';
import { replayOf } from '../../console/webhooks/webhook-filter.ts';
import { holdRows } from '../../console/parts/hold-rows.ts';
import { prettyJson } from '../../console/webhooks/pretty-json.ts';
import { replayEach, replayInBatches, type ReplayRun } from '../../console/webhooks/replay-in-batches.ts';
import { Refused } from '../../console/call.ts';
import type { ReplayMany, Replayed, ReplayedMany } from '../../console/wire.ts';

describe('pretty JSON', () => {
  it('has a line for each value, and every value unchanged', () => {
    const text = String.raw`{"id":45454565682155678901,"id":1.0,"n":{"a":[],"b":{}, "c":[1, "x,{\"y\\"]},"e":1E2}`;
    expect(prettyJson(text)).toBe(
      String.raw`{
  "id": 45454565682155678901,
  "id": 1.0,
  "n": {
    "a": [],
    "b": {},
    "c": [
      1,
      "x,{\"y\\"
    ]
  },
  "e": 1E2
}`,
    );
  });

  it.each(['""', '7', '[]', '{}', ' [ ] ', 'null', '"a b"'])('is the text itself for %s', (text) => {
    expect(prettyJson(text)).toBe(text.replaceAll(/\s+(?=[[\]]|$)|^\s+/g, ''));
  });

  it.each(['', 'status=READY', '{"a":}', '{', "{'a': 1}"])('does not exist for the invalid JSON %s', (text) => {
    expect(prettyJson(text)).toBeUndefined();
  });

  it('is shorter than 2 MB for 20,000 nested brackets', () => {
    const deep = 20_000;
    expect(prettyJson('['.repeat(deep) + ']'.repeat(deep))?.length).toBeLessThan(2 * deep * 50);
  });

  it('has all values of a large body', () => {
    const text = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => ({ id: i, name: 'Burger, "well done"' })));
    expect(JSON.parse(prettyJson(text) ?? '')).toEqual(JSON.parse(text));
  });
});

describe('the filter of webhooks', () => {
  const none = { location: '', group: '', integration: '', outcome: '', oldToken: '', order: '', since: '', until: '' };

  it('allows a replay of all matches only if the API accepts the filter', () => {
    expect(replayOf(none)).toMatchObject({ why: expect.stringContaining('outcome') });
    expect(replayOf({ ...none, location: 'club-1' })).toHaveProperty('why');
    expect(replayOf({ ...none, outcome: 'dropped', order: 'order-1' })).toHaveProperty('why');
    expect(replayOf({ ...none, outcome: 'dropped', location: 'club-1' })).toEqual({
      outcome: 'dropped',
      location: 'club-1',
    });
    expect(replayOf({ ...none, oldToken: 'true' })).toEqual({ oldToken: true });
    expect(replayOf({ ...none, outcome: 'dropped', oldToken: 'false' })).toEqual({ outcome: 'dropped' });
    expect(replayOf({ ...none, since: '2026-01-31T18:00:00Z' })).toEqual({ since: '2026-01-31T18:00:00Z' });
  });
});

describe('a replay of many webhooks', () => {
  const replayed = (webhookId: string): ReplayedMany['replayed'][number] => ({
    webhookId: null,
    replayOf: webhookId,
    receivedAt: '2026-01-31T17:00:00.000Z',
    locationId: 'club-1',
    integration: 'standard',
    outcome: 'applied',
    reason: null,
    cause: null,
    events: [],
    redriven: 0,
  });
  const answer = (about: Partial<ReplayedMany>): ReplayedMany => ({
    dryRun: true,
    until: '2026-01-31T18:00:00.000Z',
    outcomes: {},
    replayed: [],
    refused: [],
    left: 0,
    next: null,
    ...about,
  });
  const answers = [
    answer({ outcomes: { applied: 2 }, replayed: [replayed('a'), replayed('b')], left: 3, next: 'b' }),
    answer({ outcomes: { applied: 1, dropped: 1 }, replayed: [replayed('c'), replayed('d')], left: 1, next: 'd' }),
    answer({
      refused: [
        {
          webhookId: 'e',
          receivedAt: '2026-01-31T17:00:00.000Z',
          locationId: 'club-1',
          integration: 'standard',
          refused: 'gone',
          cause: { code: 'erased' },
        },
      ],
    }),
  ];

  async function run(
    from?: ReplayRun,
    give: (nth: number) => ReplayedMany | undefined = (nth) => answers[nth],
  ): Promise<{ asked: ReplayMany[]; runs: ReplayRun[] }> {
    const asked: ReplayMany[] = [];
    const runs: ReplayRun[] = [];
    const send = async (body: ReplayMany): Promise<ReplayedMany> => {
      asked.push(body);
      return give(asked.length - 1) ?? expect.unreachable('requested again after the end');
    };
    for await (const each of replayInBatches(send, { outcome: 'dropped', dryRun: true }, from)) runs.push(each);
    return { asked, runs };
  }

  it('runs in batches one after another, and adds up their outcomes', async () => {
    const { asked, runs } = await run();
    expect(asked).toEqual([
      { outcome: 'dropped', dryRun: true, limit: 100 },
      { outcome: 'dropped', dryRun: true, limit: 100, until: '2026-01-31T18:00:00.000Z', cursor: 'b' },
      { outcome: 'dropped', dryRun: true, limit: 100, until: '2026-01-31T18:00:00.000Z', cursor: 'd' },
    ]);
    expect(runs.map(({ outcomes, left }) => ({ outcomes, left }))).toEqual([
      { outcomes: { applied: 2 }, left: 3 },
      { outcomes: { applied: 3, dropped: 1 }, left: 1 },
      { outcomes: { applied: 3, dropped: 1 }, left: 0 },
    ]);
    expect(runs.at(-1)).toMatchObject({
      replayed: [{ replayOf: 'a' }, { replayOf: 'b' }, { replayOf: 'c' }, { replayOf: 'd' }],
      refused: [{ webhookId: 'e' }],
      next: null,
    });
  });

  it('skips a chosen webhook that cannot be replayed, and continues after an error', async () => {
    const asked: string[] = [];
    const replay = async (webhookId: string): Promise<Replayed> => {
      asked.push(webhookId);
      if (webhookId === 'b') throw new Refused(409, 'gone', { reason: { code: 'erased' } });
      if (webhookId === 'c' && asked.length === 3) throw new Refused(0, 'The service cannot be reached.');
      return replayed(webhookId);
    };
    const chosen = ['c', 'a', 'b'].map((webhookId) => ({ ...replayed(webhookId), webhookId }));
    let run: ReplayRun | undefined;
    const go = async (from?: ReplayRun): Promise<void> => {
      for await (run of replayEach(replay, chosen, from));
    };
    await expect(go()).rejects.toThrow('cannot be reached');
    expect(run).toMatchObject({ left: 1, next: 'b', refused: [{ webhookId: 'b', cause: { code: 'erased' } }] });
    await go(run);
    expect(asked).toEqual(['a', 'b', 'c', 'c']);
    expect(run).toMatchObject({
      left: 0,
      next: null,
      outcomes: { applied: 2 },
      replayed: [{ replayOf: 'a' }, { replayOf: 'c' }],
    });
  });

  it('that was interrupted continues after its last batch', async () => {
    const { runs } = await run();
    const { asked } = await run(runs[1], () => answers[2]);
    expect(asked).toEqual([
      { outcome: 'dropped', dryRun: true, limit: 100, until: '2026-01-31T18:00:00.000Z', cursor: 'd' },
    ]);
  });
});

it.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1.0 kB'],
  [999_949, '999.9 kB'],
  [999_999, '1.0 MB'],
  [1_048_576, '1.0 MB'],
])('%i bytes are shown as %s', (bytes, words) => {
  expect(bytesInWords(bytes)).toBe(words);
});

describe('a list that is loaded again', () => {
  const rows = (text: string): string[] => text.split(' ');
  const hold = (shown: string, loaded: string, isRead: boolean) =>
    holdRows(rows(shown), rows(loaded), (row) => row.charAt(0), isRead);

  it('shows new rows at once while nobody reads', () => {
    expect(hold('b c', 'a b2', false)).toEqual({ rows: ['a', 'b2'], waiting: 0 });
  });

  it('keeps its rows in place while somebody reads, and counts the new ones', () => {
    expect(hold('b c', 'a b2', true)).toEqual({ rows: ['b2', 'c'], waiting: 1 });
    expect(hold('b c', 'b2 c', true)).toEqual({ rows: ['b2', 'c'], waiting: 0 });
  });
});
