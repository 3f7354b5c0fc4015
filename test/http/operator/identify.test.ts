import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { identifier, type Identify } from '../../../src/http/operator/identify.ts';
import { OPERATOR_TOKEN } from '../../../world/system/ask-operator.ts';

const AWAY = new Error('Connection terminated unexpectedly');
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let asked: number;
/** What Postgres says. */
let answer: () => Promise<unknown>;
let identify: Identify;
let token: string;

const row = { id: randomUUID(), name: 'anna', rights: [{ roles: ['viewer'], locations: null, locationGroups: [] }] };
const right = async (): Promise<unknown> => ({
  rows: [
    {
      ...row,
      kind: 'token',
      sessionId: randomUUID(),
      openedAt: new Date(),
      signedInAt: new Date(),
      expiresAt: new Date(Date.now() + HOUR_MS),
    },
  ],
});
const wrong = async (): Promise<unknown> => ({ rows: [] });
const away = async (): Promise<unknown> => Promise.reject(AWAY);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'], now: Date.now() });
  // A cache takes a time of 0 for none.
  vi.advanceTimersByTime(1);
  asked = 0;
  answer = right;
  token = makeToken('exo_');
  const query = (): Promise<unknown> => {
    asked += 1;
    return answer();
  };
  identify = identifier({ query } as unknown as Pool, OPERATOR_TOKEN, () => new Date());
});
afterEach(() => void vi.useRealTimers());

describe('the look-up of an operator', () => {
  it('is one query for many simultaneous requests, and another query after two seconds', async () => {
    for (const find of [() => identify.byToken(token), () => identify.bySession(['x'.repeat(43)])]) {
      asked = 0;
      const all = await Promise.all(Array.from({ length: 200 }, find));
      expect(all.map((each) => each?.name)).toEqual(Array.from({ length: 200 }, () => 'anna'));
      vi.advanceTimersByTime(1_900);
      await find();
      expect(asked).toBe(1);
      vi.advanceTimersByTime(200);
      await find();
      expect(asked).toBe(2);
    }
  });

  it('sends no query for a token that cannot have been issued', async () => {
    for (const given of ['', 'exo_', `${token}x`, token.slice(0, -1), `${token.slice(0, -1)}!`, makeToken('exw_')]) {
      expect(await identify.byToken(given), given).toBeUndefined();
    }
    expect(await identify.byToken(token.replace(/....$/, 'AAAA'))).toBeUndefined();
    expect(await identify.byToken(undefined)).toBeUndefined();
    expect(await identify.byToken(OPERATOR_TOKEN)).toMatchObject({ name: 'OPERATOR_TOKEN' });
    expect(asked).toBe(0);
  });

  it('sends another query after a change of rights at this process, even if a query is running', async () => {
    await identify.byToken(token);
    identify.invalidateCache();
    answer = wrong;
    vi.advanceTimersByTime(1);
    expect(await identify.byToken(token)).toBeUndefined();

    const slow = Promise.withResolvers<unknown>();
    answer = () => slow.promise;
    const before = identify.byToken(token);
    vi.advanceTimersByTime(1);
    identify.invalidateCache();
    vi.advanceTimersByTime(1);
    answer = wrong;
    expect(await identify.byToken(token)).toBeUndefined();
    slow.resolve(await right());
    expect(await before).toBeDefined();
    expect(await identify.byToken(token)).toBeUndefined();
  });
});

describe('an operator while Postgres is away', () => {
  it('keeps access for a day after the last look-up', async () => {
    expect(await identify.byToken(token)).toMatchObject({ name: 'anna' });
    answer = away;
    for (let hours = 1; hours < 24; hours += 1) {
      vi.advanceTimersByTime(60 * MINUTE_MS);
      expect(await identify.byToken(token)).toMatchObject({ name: 'anna' });
    }
    // Not asked for by each of its requests.
    const before = asked;
    await identify.byToken(token);
    expect(asked).toBe(before);
    vi.advanceTimersByTime(60 * MINUTE_MS + 1);
    await expect(identify.byToken(token)).rejects.toThrow(AWAY);
    answer = right;
    expect(await identify.byToken(token)).toMatchObject({ name: 'anna' });
  });

  it('is refused if the look-up fails with another error than an outage', async () => {
    answer = away;
    await expect(identify.byToken(token)).rejects.toThrow(AWAY);
    answer = right;
    await identify.byToken(token);
    vi.advanceTimersByTime(3_000);
    answer = async () => Promise.reject(new Error('column does not exist'));
    await expect(identify.byToken(token)).rejects.toThrow('column');
  });

  it("is refused after the end of the operator's session", async () => {
    const cookies = ['x'.repeat(43)];
    const expiresAt = new Date(Date.now() + MINUTE_MS);
    answer = async () => ({
      rows: [{ ...row, sessionId: randomUUID(), openedAt: new Date(), signedInAt: new Date(), expiresAt }],
    });
    expect(await identify.bySession(cookies)).toBeDefined();
    answer = away;
    vi.advanceTimersByTime(59_000);
    expect(await identify.bySession(cookies)).toBeDefined();
    vi.advanceTimersByTime(1_000);
    expect(await identify.bySession(cookies)).toBeUndefined();
  });
});

it('guessed tokens do not remove a known token from memory', async () => {
  await identify.byToken(token);
  answer = wrong;
  for (let i = 0; i < 1_001; i += 1) await identify.byToken(makeToken('exo_'));
  vi.advanceTimersByTime(MINUTE_MS);
  answer = away;
  expect(await identify.byToken(token)).toBeDefined();
});
