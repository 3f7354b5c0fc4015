import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { deleteOld } from '../../../src/core/retention/retention-rules.ts';
import { credentialStore } from '../../../src/core/locations/credential-store.ts';
import type { Credentials, Grant } from '../../../src/core/domain/provider.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { KEYS } from '../../support/location-rules.ts';
import { testPool } from '../../support/test-pool.ts';
import { until } from '../../../world/processes/until.ts';

const pool = testPool({ max: 20 });
let vendor: ReturnType<typeof startVendor>;
let seed: Record<string, string>;

beforeEach(() => {
  vendor = startVendor();
  seed = { clientId: 'c-1', refreshToken: `seed-${Math.random()}` };
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Refresh tokens can be spent once; the seed's is the first. */
function startVendor(expiresIn = 3600) {
  const spent: string[] = [];
  let grants = 0;
  return {
    spent,
    answer: undefined as (() => Promise<unknown>) | undefined,
    async obtain(refreshToken: string | undefined): Promise<Grant> {
      const token = refreshToken ?? 'the first';
      if (spent.includes(token)) throw new NeedsOperator('reconnect needed: the refresh token is spent');
      spent.push(token);
      grants += 1;
      const grant = { accessToken: `access-${grants}`, expiresIn, refreshToken: `refresh-${grants}` };
      await (vendor.answer?.() ?? sleep(20));
      return grant;
    },
  };
}

/** A process of its own: it shares nothing but Postgres. */
const process = (): Credentials => credentialStore(pool, KEYS)('acme');
const tokenFrom = (credentials: Credentials, rejected?: string): Promise<string> =>
  credentials.accessToken({ seed, obtain: vendor.obtain, ...(rejected !== undefined && { rejected }) });
const rowOf = async (): Promise<Record<string, unknown>> =>
  (await pool.query('SELECT * FROM credentials ORDER BY granted_at DESC NULLS LAST LIMIT 1')).rows[0] as never;
const die = (): Promise<unknown> => pool.query(`UPDATE credentials SET renewing_until = now() - interval '1 s'`);

it('thirty requests of three processes obtain only one token', async () => {
  const processes = [process(), process(), process()];
  const tokens = await Promise.all(Array.from({ length: 30 }, (_, i) => tokenFrom(processes[i % 3] as Credentials)));
  expect(new Set(tokens)).toEqual(new Set(['access-1']));
  expect(vendor.spent).toEqual(['the first']);
});

it('each renewal uses the newest refresh token, and none is used twice', async () => {
  vendor = startVendor(0);
  const [one, other] = [process(), process()];
  for (const credentials of [one, other, one, other]) await tokenFrom(credentials);
  expect(vendor.spent).toEqual(['the first', 'refresh-1', 'refresh-2', 'refresh-3']);
});

it('a grant that was copied into the row of other settings is not used, and a new grant is obtained', async () => {
  await tokenFrom(process());
  const [mine] = (
    await pool.query<{ seed_sha256: Buffer; grant: string }>(
      'SELECT seed_sha256, "grant" FROM credentials ORDER BY granted_at DESC LIMIT 1',
    )
  ).rows;
  seed = { ...seed, refreshToken: 'of another club' };
  vendor = startVendor();
  await tokenFrom(process());
  await pool.query('UPDATE credentials SET "grant" = $1 WHERE seed_sha256 <> $2', [mine?.grant, mine?.seed_sha256]);
  vendor = startVendor();
  vendor.obtain = vi.fn(vendor.obtain);
  await tokenFrom(process());
  expect(vendor.obtain).toHaveBeenCalledWith(undefined, expect.anything());
});

it('a token that the POS refused early is renewed once for all processes', async () => {
  const [one, other] = [process(), process()];
  await Promise.all([tokenFrom(one), tokenFrom(other)]);
  await pool.query(`UPDATE credentials SET granted_at = granted_at - interval '61 s'`);
  const tokens = await Promise.all([one, one, other, other].map((each) => tokenFrom(each, 'access-1')));
  expect(new Set(tokens)).toEqual(new Set(['access-2']));
  expect(vendor.spent).toEqual(['the first', 'refresh-1']);
});

it('a token that was granted a moment ago is not renewed when the POS refuses an older token', async () => {
  const credentials = process();
  await tokenFrom(credentials);
  expect(await tokenFrom(credentials, 'access-1')).toBe('access-1');
  expect(vendor.spent).toEqual(['the first']);
});

it('a token is renewed in the last minute of its hour, or in the last tenth of a shorter life', async () => {
  await tokenFrom(process());
  const leave = (seconds: number): Promise<unknown> =>
    pool.query(
      `UPDATE credentials SET granted_at = now() + make_interval(secs => $1 - 3600),
                expires_at = now() + make_interval(secs => $1)`,
      [seconds],
    );
  await leave(70);
  expect(await tokenFrom(process())).toBe('access-1');
  await leave(50);
  expect(await tokenFrom(process())).toBe('access-2');
  await pool.query(`UPDATE credentials SET granted_at = now() - interval '70 s', expires_at = now() + interval '30 s'`);
  expect(await tokenFrom(process())).toBe('access-2');
});

it('only a caller that asks for a younger token renews the stored token early', async () => {
  const [one, other] = [process(), process()];
  const younger = (credentials: Credentials): Promise<string> =>
    credentials.accessToken({ seed, obtain: vendor.obtain, maxAgeS: 600 });
  await Promise.all([younger(one), tokenFrom(other)]);
  await pool.query(`UPDATE credentials SET granted_at = granted_at - interval '11 min'`);
  const restarted = process();
  expect(await tokenFrom(restarted)).toBe('access-1');
  expect(await younger(restarted)).toBe('access-2');
  expect(await younger(restarted)).toBe('access-2');
  expect(await tokenFrom(other)).toBe('access-1');
  expect(vendor.spent).toEqual(['the first', 'refresh-1']);
});

it('orders use a valid token during an early renewal, and after the renewal is refused', async () => {
  await tokenFrom(process());
  await pool.query(`UPDATE credentials SET granted_at = granted_at - interval '11 min'`);
  const started = Promise.withResolvers<void>();
  const refused = Promise.withResolvers<Grant>();
  const restarted = process();
  const obtain = (): Promise<Grant> => (started.resolve(), refused.promise);
  const renewal = expect(restarted.accessToken({ seed, obtain, maxAgeS: 600 })).rejects.toThrow('withdrawn');
  await started.promise;
  expect(await tokenFrom(restarted)).toBe('access-1');
  refused.reject(new NeedsOperator('withdrawn'));
  await renewal;
  expect(await tokenFrom(process())).toBe('access-1');
  expect(vendor.spent).toEqual(['the first']);
});

it('a grant is stored with the time when its connection ends, if the connection has an end', async () => {
  const lasting = (lastsS: number | undefined) =>
    process().accessToken({ seed, obtain: async () => ({ accessToken: 'a', expiresIn: 0, lastsS }) });
  await lasting(14 * 86_400 - 0.4);
  expect(await rowOf()).toMatchObject({ lasts_s: 14 * 86_400 });
  await lasting(undefined);
  expect(await rowOf()).toMatchObject({ lasts_s: null });
});

it('an order waits at most ten seconds for a token, and a token that comes later is still stored', async () => {
  let answer = (): void => {};
  vendor.answer = () =>
    new Promise((resolve) => {
      answer = () => resolve(undefined);
    });
  vi.useFakeTimers({ toFake: ['setTimeout', 'Date'] });
  const credentials = process();
  const waiting = expect(tokenFrom(credentials)).rejects.toMatchObject({ name: 'TryAgain', sent: false });
  await until(() => vendor.spent.length > 0);
  vi.advanceTimersByTime(10_000);
  await waiting;
  vi.useRealTimers();
  answer();
  expect(await tokenFrom(credentials)).toBe('access-1');
  expect(vendor.spent).toEqual(['the first']);
});

it('a call that obtains a token has its own abort signal', async () => {
  const signals: AbortSignal[] = [];
  await process().accessToken({
    seed,
    async obtain(_refreshToken, signal) {
      signals.push(signal);
      return { accessToken: 'a', expiresIn: 60 };
    },
  });
  expect(signals.map((signal) => signal.aborted)).toEqual([false]);
});

it('a grant that our keys cannot decrypt is obtained again', async () => {
  await tokenFrom(process());
  const others = parseSettingsKeys(`k2:${Buffer.alloc(32, 8).toString('base64')}`);
  const asked: unknown[] = [];
  const token = await credentialStore(
    pool,
    others,
  )('acme').accessToken({
    seed,
    async obtain(refreshToken) {
      asked.push(refreshToken);
      return { accessToken: 'anew', expiresIn: 60 };
    },
  });
  expect({ token, asked }).toEqual({ token: 'anew', asked: [undefined] });
});

it('a grant that was not renewed for 90 days is deleted', async () => {
  await tokenFrom(process());
  await pool.query(`UPDATE credentials SET granted_at = now() - interval '91 days' WHERE "grant" = $1`, [
    (await rowOf())['grant'],
  ]);
  const { rows: before } = await pool.query('SELECT FROM credentials');
  await deleteOld(pool, 'deletion of old grants', 90 * 86_400);
  const { rows: after } = await pool.query('SELECT FROM credentials');
  expect(before.length - after.length).toBe(1);
});

it('a renewal whose process died is repeated, and a reconnect is needed if the refresh token is spent', async () => {
  vendor.answer = () => new Promise(() => {});
  // Nobody waits for it any more.
  tokenFrom(process()).catch(() => {});
  await until(() => vendor.spent.length > 0);
  await die();
  const next = process();
  await expect(tokenFrom(next)).rejects.toThrow(new NeedsOperator('reconnect needed: the refresh token is spent'));

  // The operator puts new settings.
  seed = { ...seed, refreshToken: 'another' };
  vendor = startVendor();
  expect(await tokenFrom(next)).toBe('access-1');
});

it('after a final refusal, orders that wait for the token do not request a token again', async () => {
  let asked = 0;
  const obtain = async (): Promise<Grant> => {
    asked += 1;
    throw new NeedsOperator('reconnect needed');
  };
  const credentials = process();
  for (let i = 0; i < 5; i += 1) await expect(credentials.accessToken({ seed, obtain })).rejects.toThrow(NeedsOperator);
  expect(asked).toBe(1);
});

it('a token is not lost when Postgres goes away before the token is stored', async () => {
  vendor.answer = async () => {
    await pool.query('ALTER TABLE credentials RENAME TO away');
    setTimeout(() => void pool.query('ALTER TABLE away RENAME TO credentials'), 400);
  };
  expect(await tokenFrom(process())).toBe('access-1');
  expect(await tokenFrom(process())).toBe('access-1');
  expect(vendor.spent).toEqual(['the first']);
});

it('a token is not lost when Postgres stays away: the process that obtained the token keeps it and stores it later', async () => {
  const credentials = process();
  let skew = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + skew);
  vendor.answer = async () => {
    vendor.answer = undefined;
    await pool.query('ALTER TABLE credentials RENAME TO away');
    // Its time is over once the first write has failed.
    vi.spyOn(pool, 'query').mockImplementationOnce(() => {
      skew = 11_000;
      throw new Error('there is no such table');
    });
  };
  await expect(tokenFrom(credentials)).rejects.toMatchObject({ name: 'TryAgain', sent: false });
  await pool.query('ALTER TABLE away RENAME TO credentials');
  await die();
  expect(await tokenFrom(credentials)).toBe('access-1');
  expect(await tokenFrom(process())).toBe('access-1');
  expect(vendor.spent).toEqual(['the first']);
});

it('a late token from a process that slept does not replace a newer token', async () => {
  let wake = (): void => {};
  vendor.answer = () =>
    new Promise((resolve) => {
      wake = () => resolve(undefined);
    });
  const sleeper = tokenFrom(process());
  await until(() => vendor.spent.length > 0);
  await die();
  const awake = await process().accessToken({ seed, obtain: async () => ({ accessToken: 'newer', expiresIn: 3600 }) });
  wake();
  await sleeper;
  expect(awake).toBe('newer');
  expect(await tokenFrom(process())).toBe('newer');
});

it('a stored grant is not readable in the database', async () => {
  await tokenFrom(process());
  const row = await rowOf();
  expect(row).toMatchObject({ integration: 'acme', renewer: null, renewing_until: null });
  expect(JSON.stringify(row)).not.toMatch(/access-1|refresh-1|seed-/);
});

it.each([
  ['the answer is lost', new TryAgain('no answer', { sent: true, retryAfterMs: 5 }), 5],
  ['the provider has a fault', new TypeError('secret'), undefined],
])(
  'if a token cannot be obtained because %s, the call throws TryAgain with `sent: false`, and the next call works',
  async (_name, fault, wait) => {
    const credentials = process();
    const failing = credentials.accessToken({ seed, obtain: () => Promise.reject(fault) });
    const error = await failing.catch((error: unknown) => error as TryAgain);
    expect(error).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: wait });
    expect((error as Error).message).not.toContain('secret');
    expect(await tokenFrom(credentials)).toBe('access-1');
  },
);

it('a grant is used only for the settings from which it came', async () => {
  const credentials = process();
  await tokenFrom(credentials);
  seed = { ...seed, clientId: 'c-2' };
  vendor = startVendor();
  await tokenFrom(credentials);
  expect(vendor.spent).toEqual(['the first']);
});
