import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseFollowKeys } from '../../src/identity/follow-keys.ts';
import { BadFollowToken, createFollowTokenVerifier, type VerifyFollowToken } from '../../src/identity/follow-token.ts';
import { CannotVerify } from '../../src/identity/issuer-keys.ts';
import { anyText } from '../../world/inputs/any-text.ts';
import { SEED } from '../../world/inputs/seed.ts';
import { sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { followSigner, signFollowToken, type FollowSigner } from '../../world/members/sign-follow-token.ts';

const AUDIENCE = 'https://expediter.example.com/follow';
/** In all that a token may carry: no error has it. */
const MARKER = 'hunter2';
const DAY_S = 86_400;
/** Of P-256. */
const CURVE_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'RS256', 'HS256'] as const;

const at = Date.parse('2027-01-31T18:00:00.5Z');
const nowS = Math.floor(at / 1000);
const now = (): Date => new Date(at);
const claims = { sub: 'o-1', aud: AUDIENCE, exp: nowS + 3600 };

const signers = ALGORITHMS.map((alg) => followSigner(alg, `k-${alg}`));
const [es256, eddsa, , rs256, hs256] = signers as [
  FollowSigner,
  FollowSigner,
  FollowSigner,
  FollowSigner,
  FollowSigner,
];
const foreign = ALGORITHMS.map((alg) => followSigner(alg, `k-${alg}`));
const openKeys = signers.filter((each) => each !== hs256).map(({ jwk }) => jwk);

let jwks: HttpServer & { keys: unknown; status: number; hits: number };
/** What a token tells to fetch, and nobody may. */
let lure: HttpServer & { hits: number };
let byUrl: VerifyFollowToken;
const byKeys = withKeys(signers.map(({ jwk }) => jwk));

beforeAll(async () => {
  const state = { keys: {} as unknown, status: 200, hits: 0 };
  const server = await serveHttp((_request, response) => {
    jwks.hits += 1;
    sendJson(response, jwks.status, jwks.keys);
  });
  jwks = Object.assign(server, state);
  lure = Object.assign(
    await serveHttp((_request, response) => {
      lure.hits += 1;
      sendJson(response, 200, { keys: foreign.map(({ jwk }) => jwk) });
    }),
    { hits: 0 },
  );
});
beforeEach(() => {
  Object.assign(jwks, { keys: { keys: openKeys }, status: 200, hits: 0 });
  byUrl = createFollowTokenVerifier({ audience: AUDIENCE, jwksUrl: `${jwks.url}/jwks` }, now);
});
afterEach(() => vi.useRealTimers());
afterAll(async () => {
  expect(lure.hits).toBe(0);
  await Promise.all([jwks.stop(), lure.stop()]);
});

function withKeys(keys: object[]): VerifyFollowToken {
  return createFollowTokenVerifier({ audience: AUDIENCE, keys: parseFollowKeys(JSON.stringify({ keys })) }, now);
}

async function refusedBy(verify: VerifyFollowToken, token: string | undefined): Promise<BadFollowToken> {
  const error: unknown = await verify(token).then(
    (follow) => new Error(`accepted: ${JSON.stringify({ token, follow })}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof BadFollowToken) return error;
  throw error;
}

/** Why a token is refused, in words that say nothing of it. */
async function refusal(verify: VerifyFollowToken, token: string | undefined): Promise<string> {
  const error = await refusedBy(verify, token);
  const said = inspect(error);
  for (const part of [MARKER, ...(token ?? '').split('.').filter((each) => each.length > 9)]) {
    expect(said).not.toContain(part);
  }
  return error.message;
}

async function refused(token: string | undefined, reason: RegExp = /./): Promise<void> {
  expect(await refusal(byKeys, token)).toMatch(reason);
  expect(await refusal(byUrl, token)).toMatch(reason);
}

describe('a follow token', () => {
  it.each(signers)('is accepted with its order and its expiry if it is signed with $alg', async (signer) => {
    const follow = { serviceOrderId: 'o-1', expiresAt: new Date((claims.exp + 30) * 1000) };
    expect(await byKeys(signFollowToken(signer, claims))).toEqual(follow);
    if (signer !== hs256) expect(await byUrl(signFollowToken(signer, claims))).toEqual(follow);
  });

  it('is refused if it is signed with HS256 and the keys are from a URL, even if its secret is among the keys', async () => {
    jwks.keys = { keys: signers.map(({ jwk }) => jwk) };
    expect(await refusal(byUrl, signFollowToken(hs256, claims))).toMatch(/"alg".* not allowed/);
    expect(jwks.hits).toBe(0);
  });

  it("is accepted without a kid if only one key has the token's algorithm", async () => {
    const one = signFollowToken(es256, claims, { kid: undefined });
    expect(await byKeys(one)).toMatchObject({ serviceOrderId: 'o-1' });
    expect(await byUrl(one)).toMatchObject({ serviceOrderId: 'o-1' });
    await refused(signFollowToken(eddsa, claims, { kid: undefined }), /multiple matching keys/);
  });

  it.each<[string, object]>([
    ['an expiry 29 seconds ago', { exp: nowS - 29 }],
    ['an nbf in 30 seconds', { nbf: nowS + 30 }],
    ['an expiry in a day', { exp: nowS + DAY_S + 30 }],
    ['an expiry with a fraction', { exp: nowS + 0.1 }],
    ['unknown claims', { iss: MARKER, iat: nowS, jti: MARKER, member: { id: MARKER } }],
    ['an order id of 255 characters', { sub: 'x'.repeat(255) }],
    ['an order id with any letters', { sub: '🍕 / ü\n' }],
  ])('is accepted with %s', async (_what, more) => {
    const token = signFollowToken(eddsa, { ...claims, ...more });
    expect(await byKeys(token)).toMatchObject({ serviceOrderId: { ...claims, ...more }.sub });
    expect(await byUrl(token)).toMatchObject({ serviceOrderId: { ...claims, ...more }.sub });
  });

  const wrongClaims: Record<string, unknown[]> = {
    aud: [
      undefined,
      null,
      '',
      `${AUDIENCE}/`,
      AUDIENCE.toUpperCase(),
      [AUDIENCE],
      [AUDIENCE, MARKER],
      { 0: AUDIENCE },
      7,
    ],
    sub: [undefined, null, '', 7, true, ['o-1'], { id: 'o-1' }, 'x'.repeat(256), 'o-1\0', '\ud800'],
    exp: [
      undefined,
      null,
      true,
      [nowS + 9],
      {},
      `${nowS + 9}`,
      '',
      0,
      -1,
      1e308,
      nowS - 30,
      nowS + DAY_S + 32,
      claims.exp * 1000,
    ],
    nbf: [null, true, [], {}, `${nowS}`, 1e308, nowS + 31, at],
    iat: [MARKER, null],
  };
  it.each(Object.entries(wrongClaims).flatMap(([name, values]) => values.map((value) => [name, value])))(
    'is refused with the claim %s %j',
    async (name, value) => {
      await refused(signFollowToken(eddsa, { ...claims, [name as string]: value }), new RegExp(name as string));
    },
  );

  it.each<[string, string]>([
    ['a second sub', `{"sub":"o-1","aud":"${AUDIENCE}","exp":${claims.exp},"sub":7}`],
    ['a second aud', `{"sub":"o-1","aud":"${AUDIENCE}","exp":${claims.exp},"aud":"${MARKER}"}`],
    ['an expiry beyond all numbers', `{"sub":"o-1","aud":"${AUDIENCE}","exp":1e999}`],
    ['claims under __proto__', `{"__proto__":{"sub":"o-1","aud":"${AUDIENCE}","exp":${claims.exp}}}`],
    ['a list', `[${JSON.stringify(claims)}]`],
    ['deep lists', '['.repeat(2_000)],
    ['a payload that is not JSON', MARKER],
    ['an empty payload', ''],
  ])('is refused with %s', async (_what, payload) => {
    await refused(signFollowToken(eddsa, payload));
  });

  it.each([
    { crit: ['exp'] },
    { crit: [MARKER], [MARKER]: 1 },
    { crit: [] },
    { crit: ['b64'], b64: false },
    { crit: ['b64'], b64: 1 },
    { alg: 'none' },
    { alg: undefined },
    { alg: MARKER },
    { alg: 'ES256' },
    { alg: 'ML-DSA-44' },
    { alg: ['EdDSA'] },
    { kid: MARKER },
    { kid: '__proto__' },
    { kid: ['k-EdDSA'] },
    { kid: null },
    { kid: 'k-ES256' },
  ])('is refused with the header %j', async (header) => {
    await refused(signFollowToken(eddsa, claims, header));
  });

  it('is refused with the signature of another key of the same kind', async () => {
    for (const signer of foreign) {
      const token = signFollowToken(signer, claims);
      expect(await refusal(byKeys, token)).toMatch(/signature verification failed/);
      expect(await refusal(byUrl, token)).toMatch(/signature verification failed|not allowed/);
    }
  });

  it('is not verified with a key from its own header', async () => {
    for (const signer of foreign) {
      for (const brought of [
        { jwk: signer.jwk },
        { jku: `${lure.url}/jwks` },
        { x5u: `${lure.url}/x5u` },
        { x5c: ['AAAA'] },
        { jwk: signer.jwk, kid: undefined },
        { jku: `${lure.url}/jwks`, kid: MARKER },
      ]) {
        await refused(signFollowToken(signer, claims, brought));
      }
    }
  });

  it('is refused without fetching keys if it is over 4 kB or not a JWT', async () => {
    const long = { ...claims, more: 'x'.repeat(2_800) };
    expect(signFollowToken(eddsa, long).length).toBeLessThan(4096);
    expect(await byKeys(signFollowToken(eddsa, long))).toMatchObject({ serviceOrderId: 'o-1' });
    await refused(signFollowToken(eddsa, { ...long, evenMore: 'x'.repeat(300) }), /^no JWT$/);
    const token = signFollowToken(eddsa, claims);
    const [header, payload] = token.split('.');
    for (const wrong of [
      '',
      '.',
      '../http',
      `${header}.${payload}.`,
      `${token}.`,
      `${token}=`,
      `${token}\n`,
      ` ${token}`,
      `${token}.AA`,
    ]) {
      await refused(wrong, /^no JWT$/);
    }
    await refused(undefined, /^no token$/);
    expect(jwks.hits).toBe(0);
  });

  it('is accepted with another encoding of its valid signature', async () => {
    // The last letter has bits to spare, and n - s is as good as s: neither needs a key, and neither changes a claim.
    const token = signFollowToken(es256, claims);
    const [header, payload, signature = ''] = token.split('.');
    const bytes = Buffer.from(signature, 'base64url');
    const s = (CURVE_ORDER - BigInt(`0x${bytes.toString('hex', 32)}`)).toString(16).padStart(64, '0');
    const spare = String.fromCharCode(signature.charCodeAt(signature.length - 1) + 1);
    for (const same of [
      `${signature.slice(0, -1)}${spare}`,
      Buffer.from(bytes.toString('hex', 0, 32) + s, 'hex').toString('base64url'),
    ]) {
      expect(same).not.toBe(signature);
      expect(await byKeys(`${header}.${payload}.${same}`)).toMatchObject({ serviceOrderId: 'o-1' });
    }
    await refused(`${header}.${String(payload).slice(0, -1)}${spare}.${signature}`);
  });
});

describe("a platform's keys from a URL", () => {
  const [old, next, unknown] = ['2026', '2027', '2028'].map((kid) => followSigner('ES256', kid)) as [
    FollowSigner,
    FollowSigner,
    FollowSigner,
  ];
  const serveKeys = (...keys: FollowSigner[]): unknown => (jwks.keys = { keys: keys.map(({ jwk }) => jwk) });
  const isTaken = async (signer: FollowSigner): Promise<boolean> =>
    (await byUrl(signFollowToken(signer, claims))).serviceOrderId === 'o-1';
  const pass = (seconds: number): void => void vi.advanceTimersByTime(seconds * 1000);

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] });
    serveKeys(old);
  });

  it('are fetched once, and again for a token with an unknown kid', async () => {
    await Promise.all([isTaken(old), isTaken(old)]);
    serveKeys(next, old);
    pass(31);
    expect([await isTaken(next), await isTaken(old), jwks.hits]).toEqual([true, true, 2]);
    serveKeys(next);
    pass(601);
    await isTaken(next);
    expect(await refusal(byUrl, signFollowToken(old, claims))).toMatch(/no applicable key/);
  });

  it('are fetched at most twice in a minute for invented kids', async () => {
    for (let second = 0; second < 60; second += 1) {
      const made = signFollowToken(unknown, claims, { kid: `made-up-${second}` });
      expect(await refusal(byUrl, made)).toMatch(/no applicable key/);
      pass(1);
    }
    expect(jwks.hits).toBe(2);
  });

  it('that cannot be fetched cause CannotVerify, except for a token whose key is known', async () => {
    jwks.status = 500;
    await expect(isTaken(old)).rejects.toThrow(CannotVerify);
    jwks.status = 200;
    pass(2);
    await isTaken(old);
    jwks.status = 500;
    pass(601);
    expect(await isTaken(old)).toBe(true);
    expect(await refusal(byUrl, signFollowToken({ ...unknown, kid: old.kid }, claims))).toMatch(/signature/);
    for (let tries = 0; tries < 20; tries += 1) {
      await expect(isTaken(next)).rejects.toThrow(CannotVerify);
      pass(2);
    }
    expect(jwks.hits).toBe(2 + 2);
  });

  it.each([
    ['nothing listens at the URL', () => ({ jwksUrl: 'http://127.0.0.1:1/jwks' })],
    ['they are not a key set', () => ({ jwksUrl: jwks.url, keys: { keys: 7 } })],
    ['they are private keys', () => ({ jwksUrl: jwks.url, keys: { keys: [{ ...old.jwk, d: 'AAAA' }] } })],
  ])('cause CannotVerify if %s', async (_what, make) => {
    const { jwksUrl, keys } = make() as { jwksUrl: string; keys?: unknown };
    jwks.keys = keys;
    const verify = createFollowTokenVerifier({ audience: AUDIENCE, jwksUrl }, now);
    await expect(verify(signFollowToken(old, claims))).rejects.toThrow(CannotVerify);
  });

  it('are ignored if `use` or `key_ops` excludes verifying, and RSA keys under 2048 bits are refused', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const short: FollowSigner = {
      alg: 'RS256',
      kid: 'short',
      jwk: { ...publicKey.export({ format: 'jwk' }), kid: 'short' },
      sign: (text) => sign('sha256', Buffer.from(text), privateKey),
    };
    jwks.keys = { keys: [{ ...old.jwk, use: 'enc' }, { ...next.jwk, key_ops: ['sign'] }, short.jwk] };
    for (const signer of [old, next]) {
      expect(await refusal(byUrl, signFollowToken(signer, claims))).toMatch(/no applicable key/);
    }
    expect(await refusal(byUrl, signFollowToken(short, claims))).toMatch(/2048 bits/);
  });
});

describe('10,000 forged follow tokens', () => {
  const orders = ['o-1', 'o-2', 'o-3'];
  const right = signers.flatMap((signer) => orders.map((sub) => signFollowToken(signer, { ...claims, sub })));
  const isRight = new Set(right);
  /** Also where the letter at its end has other bits to spare. */
  const saysTheSame = (token: string): boolean =>
    /^[\w.-]+$/.test(token) &&
    isRight.has(withPart(token, 2, (text) => Buffer.from(text, 'base64url').toString('base64url')));
  const publicBytes = [rs256, es256, eddsa].flatMap(({ jwk, kid }) => {
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    const pem = key.export({ type: 'spki', format: 'pem' }).toString();
    const parts = [jwk['n'], jwk['x'], jwk['y']].filter((part) => typeof part === 'string');
    return [
      pem,
      pem.trim(),
      key.export({ type: 'spki', format: 'der' }),
      JSON.stringify(jwk),
      JSON.stringify(key.export({ format: 'jwk' })),
      ...parts.flatMap((part) => [part, Buffer.from(part, 'base64url')]),
      kid,
      '',
    ];
  });
  const anyOf = fc.constantFrom;
  const fast = anyOf(eddsa, hs256, es256);
  const part = fc.nat({ max: 2 });
  const withPart = (token: string, nth: number, change: (part: string) => string): string =>
    token
      .split('.')
      .map((each, i) => (i === nth ? change(each) : each))
      .join('.');
  const encode = (about: unknown): string => Buffer.from(JSON.stringify(about)).toString('base64url');
  const signature = (bytes: Buffer) => (token: string) => withPart(token, 2, () => bytes.toString('base64url'));
  /** Where a signature that is 0 divides, or is its curve's order. */
  const curveNumbers = ['', '01', CURVE_ORDER.toString(16), (CURVE_ORDER - 1n).toString(16), 'f'.repeat(64)].flatMap(
    (number) => [number.padStart(64, '0'), number.padEnd(64, '0')],
  );
  const algs = [...ALGORITHMS, 'none', 'None', 'NONE', '', 'HS384', 'HS512', 'RS384', 'PS256', 'ES384', 'es256', 'dir'];
  const header = fc.record(
    { alg: anyOf(...algs), kid: anyOf(...signers.map(({ kid }) => kid), MARKER, ''), typ: anyOf('JWT', MARKER) },
    { requiredKeys: [] },
  );
  /** Of each kind how to make one. What happens to be right, or says the same as what is, is none. */
  const kinds: Record<string, fc.Arbitrary<string>> = {
    'bits turned': fc
      .tuple(anyOf(...right), part, fc.array(fc.nat({ max: 8 * 512 }), { minLength: 1, maxLength: 8 }))
      .map(([token, nth, bits]) =>
        withPart(token, nth, (text) => {
          const bytes = Buffer.from(text, 'base64url');
          for (const bit of new Set(bits.map((each) => each % (8 * bytes.length)))) {
            bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
          }
          return bytes.toString('base64url');
        }),
      ),
    'letters put in': fc
      .tuple(anyOf(...right), fc.nat({ max: 4096 }), fc.nat({ max: 2 }), anyText({ maxLength: 3 }))
      .map(([token, where, cut, letters]) => {
        const index = where % token.length;
        return token.slice(0, index) + letters + token.slice(index + cut);
      }),
    'parts of several': fc
      .tuple(anyOf(...right), anyOf(...right), anyOf(...right))
      .map((tokens) => tokens.map((token, nth) => token.split('.')[nth]).join('.')),
    'another header': fc
      .tuple(anyOf(...right), header)
      .map(([token, about]) => withPart(token, 0, () => encode(about))),
    'another header, signed': fc
      .tuple(fast, header)
      .filter(
        ([{ alg, kid }, about]) => about.alg?.slice(0, 2) !== alg.slice(0, 2) || ![kid, undefined].includes(about.kid),
      )
      .map(([by, about]) => signFollowToken(by, claims, JSON.stringify(about))),
    'another order': fc
      .tuple(anyOf(...right), fc.string())
      .map(([token, sub]) => withPart(token, 1, () => encode({ ...claims, sub }))),
    'an HMAC of what is public': fc
      .tuple(anyOf(...publicBytes), header)
      .map(([secret, about]) =>
        signFollowToken(
          { alg: 'HS256', kid: '', sign: (text) => createHmac('sha256', secret).update(text).digest() },
          claims,
          JSON.stringify({ kid: 'k-RS256', ...about, alg: 'HS256' }),
        ),
      ),
    'of a stranger': fc
      .tuple(
        anyOf(...foreign.filter(({ alg }) => alg !== 'RS256')),
        fc.record({
          kid: anyOf(...signers.map(({ kid }) => kid), undefined, MARKER),
          jku: fc.boolean().map((isThere) => (isThere ? lure.url : undefined)),
          x5u: fc.boolean().map((isThere) => (isThere ? lure.url : undefined)),
          jwk: anyOf(undefined, ...foreign.map(({ jwk }) => jwk)),
        }),
      )
      .map(([by, about]) => signFollowToken(by, claims, about)),
    'a signature of nothing': fc
      .tuple(
        anyOf(...right),
        fc.oneof(
          fc.tuple(fc.nat({ max: 520 }), anyOf(0, 1, 0xff)).map(([length, fill]) => Buffer.alloc(length, fill)),
          fc.tuple(anyOf(...curveNumbers), anyOf(...curveNumbers)).map((halves) => Buffer.from(halves.join(''), 'hex')),
        ),
      )
      .map(([token, bytes]) => signature(bytes)(token)),
    'a signature in DER': anyOf(...right).map((token) =>
      withPart(token, 2, (text) => {
        const bytes = Buffer.from(text, 'base64url');
        const half = (from: number): Buffer =>
          Buffer.concat([Buffer.from([2, 33, 0]), bytes.subarray(from, from + 32)]);
        const halves = Buffer.concat([half(0), half(32)]);
        return Buffer.concat([Buffer.from([48, halves.length]), halves]).toString('base64url');
      }),
    ),
    'wrong claims, signed': fc
      .tuple(fast, anyOf('sub', 'aud', 'exp'), fc.jsonValue())
      .filter(([, name, value]) => name !== 'sub' || typeof value !== 'string' || value.length === 0)
      .map(([by, name, value]) => signFollowToken(by, { ...claims, [name]: value })),
    'no JWT at all': fc.oneof(
      anyText({ maxLength: 300 }),
      fc.array(fc.base64String({ maxLength: 200 }), { maxLength: 5 }).map((parts) => parts.join('.')),
      fc.array(fc.jsonValue(), { minLength: 3, maxLength: 3 }).map((parts) => parts.map(encode).join('.')),
      fc.tuple(anyOf(...right), anyOf('=', '==', '\n', ' ', '\0', '.', 'Bearer ')).map(([token, more]) => token + more),
    ),
  };

  it('are all refused, on average in less than a millisecond of CPU', async () => {
    await byUrl(right[0]);
    const each = Math.ceil(10_000 / Object.keys(kinds).length);
    const forged = Object.values(kinds).flatMap((kind, nth) =>
      fc
        .sample(kind, { numRuns: 2 * each, seed: SEED + nth })
        .filter((token) => !saysTheSame(token))
        .slice(0, each),
    );
    expect(forged.length).toBeGreaterThanOrEqual(10_000);
    const before = process.cpuUsage();
    const errors = await Promise.all(forged.map((token, nth) => refusedBy(nth % 2 === 0 ? byKeys : byUrl, token)));
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000 / forged.length).toBeLessThan(1);
    expect(jwks.hits).toBe(1);
    // A few sentences for all of them, so nothing of any.
    expect(new Set(errors.map(({ message }) => message)).size).toBeLessThan(16);
  });
});
