import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { FailedAuthObserved, Observed } from '../../src/core/domain/observed.ts';
import {
  BURST,
  MOST_SOURCES,
  PER_SECOND,
  TooManyFailures,
  throttleFailures,
} from '../../src/http/throttle-failures.ts';
import { makeToken } from '../../src/core/domain/make-token.ts';
import { OPERATOR_TOKEN, sendAsIs, type OperatorAnswer } from '../../world/system/ask-operator.ts';
import { BEHIND_US, fromElsewhere } from '../../world/network/from-elsewhere.ts';
import { OWN_PAGE, logIn, nameToken, sendLogin } from '../../world/system/log-in.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { scrape } from '../observe/scrape.ts';
import { until } from '../../world/processes/until.ts';

const WRONG = 'a-wrong-token-that-somebody-tries-again-and-again';

let system: System;
let url: string;

beforeAll(async () => {
  system = await startSystem({ env: { OPERATOR_TOKEN, ...BEHIND_US } });
  url = system.urls[0] ?? '';
});
afterAll(() => system?.stop());

type From = Record<string, string>;
/** The ways to show OPERATOR_TOKEN. */
const WAYS: [string, (token: string, from: From) => Promise<OperatorAnswer>][] = [
  ['bearer', (token, from) => sendAsIs(url, '/v1/orders', { headers: { authorization: `Bearer ${token}`, ...from } })],
  ['sign_in', (token, from) => sendLogin(url, token, { ...OWN_PAGE, origin: url, ...from })],
];
const bearer = WAYS[0]?.[1] ?? expect.fail();
const signIn = WAYS[1]?.[1] ?? expect.fail();

function asSession(path: string, token: string, from: From): Promise<OperatorAnswer> {
  return sendAsIs(url, path, {
    headers: { cookie: `expediter_session=${token.padStart(43, 'x').slice(-43)}`, ...OWN_PAGE, ...from },
  });
}

/** A named token that this process has not met. */
const newToken = (): Promise<string> => nameToken(system, randomUUID());

/** Sends wrong ones until one is not judged. @returns how many were */
async function spend(way: (token: string, from: From) => Promise<OperatorAnswer>, from: From): Promise<number> {
  for (let judged = 0; judged < 10 * BURST; judged += 1)
    if ((await way(WRONG + judged, from)).status === 429) return judged;
  throw new Error('all of them were judged');
}

async function count(endpoint: string, outcome: string): Promise<number> {
  return (
    (await scrape(url, OPERATOR_TOKEN)).value('expediter_failed_authentications_total', { endpoint, outcome }) ??
    Number.NaN
  );
}

describe.each(WAYS)('wrong credentials by %s', (endpoint, way) => {
  it('are judged at a rate below five a second, and all others are answered 429', async () => {
    const from = fromElsewhere();
    const before = [await count(endpoint, 'refused'), await count(endpoint, 'slowed')];
    const statuses: number[] = [];
    const began = performance.now();
    const answered = (status: number): number => statuses.filter((each) => each === status).length;
    // On a slow machine more of them are judged meanwhile.
    while (answered(429) <= answered(401)) {
      const answers = await Promise.all(Array.from({ length: 16 }, (_, nth) => way(`${WRONG}${nth}`, from)));
      statuses.push(...answers.map(({ status }) => status));
    }
    const [refused, slowed] = [answered(401), answered(429)];
    expect(refused + slowed).toBe(statuses.length);
    expect(refused).toBeGreaterThanOrEqual(BURST);
    expect(refused).toBeLessThanOrEqual(BURST + 1 + ((performance.now() - began) / 1_000) * PER_SECOND);
    expect([
      (await count(endpoint, 'refused')) - (before[0] ?? 0),
      (await count(endpoint, 'slowed')) - (before[1] ?? 0),
    ]).toEqual([refused, slowed]);
    const { headers, text } = await until(async () => {
      const answer = await way(WRONG, from);
      return answer.status === 429 && answer;
    });
    expect([headers.get('retry-after'), headers.get('connection')]).toEqual(['1', 'close']);
    expect(text).toContain('Too many failed authentications');
  });
});

describe('during a flood of wrong credentials', () => {
  it('a valid credential from another source is accepted at once', async () => {
    await spend(bearer, fromElsewhere());
    expect((await bearer(await newToken(), fromElsewhere())).status).toBe(200);
    expect((await sendLogin(url, await newToken(), { ...OWN_PAGE, origin: url, ...fromElsewhere() })).status).toBe(204);
  });

  it('a credential that the same source used before the flood is accepted at once', async () => {
    const from = fromElsewhere();
    const token = await newToken();
    const cookie = (await logIn(url)).split('=')[1] ?? '';
    expect((await bearer(token, from)).status).toBe(200);
    expect((await asSession('/console/session', cookie, from)).status).toBe(200);
    await spend(bearer, from);
    for (let nth = 0; nth < 20; nth += 1) {
      expect((await bearer(token, from)).status).toBe(200);
      expect((await asSession('/console/session', cookie, from)).status).toBe(200);
    }
  });

  it('a new named token and a new session from the same source are accepted at once', async () => {
    const from = fromElsewhere();
    const cookie = (await logIn(url)).split('=')[1] ?? '';
    await spend(bearer, from);
    await spend(signIn, from);
    expect((await bearer(await newToken(), from)).status).toBe(200);
    expect((await signIn(await newToken(), from)).status).toBe(204);
    expect((await asSession('/console/session', cookie, from)).status).toBe(200);
  });

  it('wrong credentials that are too long to guess are all answered 401', async () => {
    const from = fromElsewhere();
    const answers = await Promise.all(
      Array.from({ length: 4 * BURST }, async (_, nth) =>
        nth % 2 === 0 ? bearer(makeToken('exo_'), from) : asSession('/console/session', String(nth), from),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  });

  it('OPERATOR_TOKEN is answered 429 until the flood is over if the same source has not used it before', async () => {
    const from = await until(async () => {
      const from = fromElsewhere();
      await spend(bearer, from);
      return (await bearer(OPERATOR_TOKEN, from)).status === 429 && from;
    });
    await until(async () => (await bearer(OPERATOR_TOKEN, from)).status === 200);
  });

  it('OPERATOR_TOKEN at another endpoint is accepted at once, because each endpoint counts its own failures', async () => {
    const from = fromElsewhere();
    await spend(bearer, from);
    expect((await signIn(OPERATOR_TOKEN, from)).status).toBe(204);
  });

  it('a hundred new valid credentials that come at once are all accepted', async () => {
    const from = fromElsewhere();
    const tokens = await Promise.all(Array.from({ length: 100 }, newToken));
    const answers = await Promise.all(tokens.map((token) => bearer(token, from)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('requests without a credential do not count as guesses', async () => {
    const from = fromElsewhere();
    for (let nth = 0; nth < 2 * BURST; nth += 1) {
      expect((await sendAsIs(url, '/v1/orders', { headers: from })).status).toBe(401);
      expect((await sendAsIs(url, '/console/session', { headers: { ...from, ...OWN_PAGE } })).status).toBe(401);
    }
    expect((await bearer(await newToken(), from)).status).toBe(200);
  });
});

describe('the source of a request', () => {
  it('is the address that a trusted proxy reports, not one that the sender wrote', async () => {
    const { 'x-forwarded-for': address } = fromElsewhere();
    let nth = 0;
    const forged = (token: string): Promise<OperatorAnswer> =>
      bearer(token, { 'x-forwarded-for': `203.0.113.${nth++}, ${address}` });
    expect(await spend(forged, {})).toBeGreaterThanOrEqual(BURST);
    expect((await bearer(WRONG, { 'x-forwarded-for': '198.51.100.7' })).status).toBe(401);
  });

  it("is the connection's address if no proxy is trusted", async () => {
    const bare = await startSystem({ env: { OPERATOR_TOKEN }, databaseUrl: system.databaseUrl });
    onTestFinished(() => bare.stop());
    const ask = (nth: number): Promise<OperatorAnswer> => {
      const ip = `203.0.113.${nth}`;
      const said = { 'x-forwarded-for': ip, forwarded: `for=${ip}`, 'x-real-ip': ip };
      return sendAsIs(bare.urls[0] ?? '', '/v1/orders', { headers: { authorization: `Bearer ${WRONG}`, ...said } });
    };
    // At once: on a slow machine the bucket would fill faster than one request after another empties it.
    const answers = await Promise.all(Array.from({ length: 4 * BURST }, (_, nth) => ask(nth)));
    expect(answers.map(({ status }) => status)).toContain(429);
  });

  it('is the /64 network of an IPv6 address, because one customer has the whole network', async () => {
    const lines = await toldBy(async (at) => {
      for (const address of [
        '2001:db8::1',
        '2001:db8:0:0:ffff::2',
        '2001:DB8:0:1::',
        '::ffff:192.0.2.1',
        'no address',
      ]) {
        await sendAsIs(at, '/v1/orders', {
          headers: { authorization: `Bearer ${WRONG}`, 'x-forwarded-for': address },
        });
      }
    });
    expect(lines.map(({ source, refused }) => [source, refused])).toEqual([
      ['2001:db8:0:0::/64', 2],
      ['2001:db8:0:1::/64', 1],
      ['192.0.2.1', 1],
      ['127.0.0.1', 1],
    ]);
  });
});

describe('the report of failures', () => {
  it('has one log line for each source and endpoint, and one row in the audit for each source', async () => {
    const from = fromElsewhere();
    const source = from['x-forwarded-for'];
    const sent = `exw_${'s'.repeat(49)}`;
    let judged = 0;
    const lines = await toldBy(async (at) => {
      for (let nth = 0; nth < 30; nth += 1) {
        const { status } = await sendAsIs(at, '/v1/orders', { headers: { authorization: `Bearer ${sent}`, ...from } });
        if (status === 401) judged += 1;
      }
      await sendAsIs(at, `/webhook/standard/club-1?token=${sent}`, { method: 'POST', headers: from });
      await sendAsIs(at, '/pubsub/push', { method: 'POST', headers: { authorization: `Bearer ${sent}`, ...from } });
    });
    expect(lines).toEqual([
      expect.objectContaining({
        endpoint: 'bearer',
        source,
        refused: judged,
        slowed: 30 - judged,
        severity: 'WARNING',
      }),
      expect.objectContaining({ endpoint: 'webhook', source, refused: 1, slowed: 0 }),
      expect.objectContaining({ endpoint: 'push', source, refused: 1, slowed: 0 }),
    ]);
    expect(JSON.stringify(lines)).not.toContain(sent);
    const rows = await system.query(
      `SELECT actor_kind, action, outcome, after FROM audit JOIN audit_outcomes USING (audit_id) WHERE source = $1`,
      [source],
    );
    const after = `${judged} wrong, ${30 - judged} slowed`;
    expect(rows).toEqual([{ actor_kind: 'nobody', action: 'sign in', outcome: 'refused', after }]);
  });

  it('lists the busiest of hundreds of sources, and gives one sum for the others', async () => {
    const lines = await toldBy(async (at) => {
      for (let nth = 0; nth < 100; nth += 1) {
        const from = { 'x-forwarded-for': `172.16.0.${nth}` };
        const send = (): Promise<unknown> =>
          sendAsIs(at, '/v1/orders', { headers: { authorization: `Bearer ${WRONG}`, ...from } });
        await send();
        if (nth >= 90) await send();
      }
    });
    expect(lines).toHaveLength(21);
    expect(lines[0]).toMatchObject({ source: '172.16.0.90', refused: 2 });
    expect(lines.at(-1)).toMatchObject({ source: 'others', refused: 80, slowed: 0 });
    expect(await system.query(`SELECT FROM audit WHERE source LIKE '172.16.0.%' OR source = 'others'`)).toHaveLength(
      21,
    );
  });
});

describe('the table of sources', () => {
  it('is bounded, and keeps each source that guesses', async () => {
    const observed: FailedAuthObserved[] = [];
    let now = 0;
    const judge = throttleFailures({
      observe: (each: Observed) => void (each.what === 'failed authentication' && observed.push(each)),
      now: () => now,
    });
    const guess = async (ip: string): Promise<string> => {
      const request = { ip, raw: { socket: {} } } as FastifyRequest;
      return judge(request, 'bearer', ['x'], async () => undefined).then(
        () => 'judged',
        (error: unknown) => (error instanceof TooManyFailures ? 'slowed' : expect.fail()),
      );
    };
    const addressOf = (nth: number): string => `10.${nth >> 16}.${(nth >> 8) & 255}.${nth & 255}`;
    for (let nth = 0; nth < BURST; nth += 1) expect(await guess(addressOf(0))).toBe('judged');
    expect(await guess(addressOf(0))).toBe('slowed');
    for (let nth = 1; nth < MOST_SOURCES; nth += 1) expect(await guess(addressOf(nth))).toBe('judged');
    const beyond: string[] = [];
    for (let nth = 0; nth < 1_000; nth += 1) beyond.push(await guess(addressOf(MOST_SOURCES + nth)));
    expect(beyond.filter((each) => each === 'judged')).toHaveLength(BURST);
    expect(await guess(addressOf(0))).toBe('slowed');
    // Once the first of them has paid for its guesses it makes room.
    now = (BURST / PER_SECOND) * 1_000;
    for (let nth = 0; nth < BURST; nth += 1) expect(await guess(addressOf(9_999))).toBe('judged');
    expect(await guess(addressOf(9_999))).toBe('slowed');
    expect(observed.filter(({ outcome }) => outcome === 'slowed')).toHaveLength(1_000 - BURST + 3);
  });

  it('does not count a credential whose check failed', async () => {
    const judge = throttleFailures({ observe: () => {}, now: () => 0 });
    const request = { ip: '10.0.0.1', raw: { socket: {} } } as FastifyRequest;
    for (let nth = 0; nth < 2 * BURST; nth += 1) {
      const failed = judge(request, 'bearer', ['x'], async () => Promise.reject(new Error('Postgres is away')));
      await expect(failed).rejects.toThrow('Postgres is away');
    }
    await new Promise(setImmediate);
    expect(await judge(request, 'bearer', ['x'], async () => 'somebody')).toBe('somebody');
  });
});

/** What a process reports of failed authentications once it ends. */
async function toldBy(action: (url: string) => Promise<void>): Promise<Record<string, unknown>[]> {
  const own = await startSystem({ env: { OPERATOR_TOKEN, ...BEHIND_US }, databaseUrl: system.databaseUrl });
  try {
    await action(own.urls[0] ?? '');
  } finally {
    await own.stop();
  }
  const lines = own.logged.map((line) => JSON.parse(line) as Record<string, unknown>);
  return lines.filter(({ message }) => message === 'failed authentications');
}
