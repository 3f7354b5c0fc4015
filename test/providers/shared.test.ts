import { createHmac } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { liveProcesses } from '../../src/core/domain/live-processes.ts';
import { NotAuthentic, NeedsOperator, TryAgain } from '../../src/core/domain/errors.ts';
import type { Credentials } from '../../src/core/domain/provider.ts';
import { callWithToken } from '../../src/providers/oauth.ts';
import { callPos, limitRate, routeOf } from '../../src/providers/call-pos.ts';
import { minorDigits, toDecimal } from '../../src/core/domain/money.ts';
import { splitName } from '../../src/core/domain/member-text.ts';
import { cutText, orderNote, reasonInWords } from '../../src/providers/order-texts.ts';
import { NOT_TAKEN, neverTaken, refuseNameless, tooLate } from '../../src/providers/refusals.ts';
import { BaseUrl } from '../../src/providers/shared-settings.ts';
import { kitchenReport, minutesIfAny } from '../../src/providers/kitchen-report.ts';
import { verifyHmac } from '../../src/core/domain/verify-hmac.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { inMemoryCredentials } from '../../packages/provider-kit/contract/in-memory-credentials.ts';

describe('money', () => {
  it.each([
    [1290, 'EUR', '12.90'],
    [5, 'EUR', '0.05'],
    [0, 'EUR', '0.00'],
    [-5, 'EUR', '-0.05'],
    [1290, 'JPY', '1290'],
    [0, 'JPY', '0'],
    [1290, 'KWD', '1.290'],
    [7, 'KWD', '0.007'],
    [12345, 'CLF', '1.2345'],
    [Number.MAX_SAFE_INTEGER, 'EUR', '90071992547409.91'],
  ])('%i minor units of %s are %s', (minor, currency, decimal) => {
    expect(toDecimal(minor, currency)).toBe(decimal);
  });

  it('has the number of decimals that ISO 4217 gives the currency', () => {
    expect([minorDigits('IQD'), minorDigits('ISK'), minorDigits('HUF'), minorDigits('USD')]).toEqual([3, 0, 2, 2]);
  });
});

describe('a report of a kitchen', () => {
  const receivedAt = new Date('2026-01-31T18:30:00Z');

  it('has the end that the POS gives, or the end of the longest pause if the POS gives none', () => {
    const said = { state: 'busy', extraMinutes: 15 } as const;
    const until = new Date('2026-01-31T18:50:00Z');
    expect(kitchenReport({ ...said, until: '2026-01-31T19:50:00+01:00' }, receivedAt)).toEqual({ ...said, until });
    expect(kitchenReport(said, receivedAt, 20)).toEqual({ ...said, until });
    const fourHours = new Date('2026-01-31T22:30:00Z');
    expect(kitchenReport({ state: 'closed' }, receivedAt)).toEqual({ state: 'closed', until: fourHours });
  });

  it('is read as open if its end has already passed', () => {
    for (const until of ['2026-01-31T18:30:00Z', '2026-01-31T18:29:59Z']) {
      expect(kitchenReport({ state: 'closed', until }, receivedAt)).toEqual({ state: 'open' });
    }
  });

  it.each([0, -5, 721, 1.5, '15', null])('has no extraMinutes if the POS reports %j', (minutes) => {
    expect(minutesIfAny.parse(minutes)).toBeUndefined();
  });
});

describe('settings', () => {
  it.each(['https://pos.example?a=1', 'https://pos.example/#b', 'ftp://pos.example', 'https://u:p@pos.example'])(
    'refuse the base URL %s, to which no path can be added',
    (url) => {
      expect(BaseUrl.safeParse(url).success).toBe(false);
    },
  );

  it('are stored without slashes at the end of a base URL', () => {
    expect(BaseUrl.parse('https://pos.example/v1//')).toBe('https://pos.example/v1');
  });
});

describe('a text for the POS', () => {
  it('is cut at the limit, with a mark and never within a symbol', () => {
    expect(cutText('short', 5)).toBe('short');
    expect(cutText('too long', 7)).toBe('too […]');
    for (let limit = 5; limit < 12; limit += 1) {
      const cut = cutText('🎂'.repeat(10), limit);
      expect(cut.isWellFormed()).toBe(true);
      expect(cut.length).toBeLessThanOrEqual(limit);
      expect(cut).toMatch(/ \[…\]$/);
    }
  });

  it('begins with the age check, even if the rest is cut', () => {
    const note = orderNote(sampleOrder({ notes: 'x'.repeat(500) }), 60);
    expect(note).toMatch(/^AGE CHECK: Pale Ale 0\.33 l\nx+ \[…\]$/);
    expect(note).toHaveLength(60);
    const [burger] = sampleOrder().items;
    const { notes: _none, ...order } = sampleOrder({ items: burger === undefined ? [] : [burger] });
    expect(orderNote(order, 60)).toBeUndefined();
  });

  it.each([
    ['Ada Lovelace', 'Ada', 'Lovelace'],
    [' Ada  King Lovelace ', 'Ada King', 'Lovelace'],
    ['Ada', 'Ada', ''],
    ['', '', ''],
  ])("has the member's name %j as first name %j and last name %j", (name, first, last) => {
    expect(splitName(name)).toEqual({ first, last });
  });
});

describe("the reason code of a POS's text", () => {
  it.each([
    ['Customer cancellation request', 'member_cancelled'],
    ['On customer request: not in stock', 'member_cancelled'],
    ['The customer has changed her mind', 'member_cancelled'],
    ['Cancelled by the guest', 'member_cancelled'],
    ['Guest no longer wants it', 'member_cancelled'],
    ['Customer called to cancel', 'member_cancelled'],
    ['customer did not respond to our request', 'no_answer'],
    ['Closed', 'closed'],
    ['We’re closed', 'closed'],
    ['The store is already closed', 'closed'],
    ['Restaurant closed', 'closed'],
    ['Closed for the day', 'closed'],
    ['Closed bag was damaged', 'none'],
    ['Delivery address busy', 'too_busy'],
    ['Wrong address', 'invalid_address'],
    ['OUT_OF_STOCK', 'item_unavailable'],
    ['UNAVAILABLE_ITEM', 'item_unavailable'],
    ['KITCHEN_CLOSED', 'closed'],
    ['The sku is not attached to a menu', 'item_unavailable'],
    ['Could not add item 1001 (not found)', 'item_unavailable'],
  ])('is $1 for "$0"', (text, code) => {
    expect(reasonInWords(text) ?? 'none').toBe(code);
  });
});

describe('rate limits', () => {
  const at = (seconds: number): Date => new Date(Date.UTC(2026, 0, 31, 18, 30, 0) + seconds * 1000);
  const fine = async (): Promise<string> => 'fine';

  it('are counted for each caller, and end with their span of time', async () => {
    const withinLimits = limitRate([
      { requests: 2, seconds: 60 },
      { requests: 3, seconds: 3600 },
    ]);
    await withinLimits('one', at(10), fine);
    await withinLimits('one', at(20), fine);
    await expect(withinLimits('one', at(30), fine)).rejects.toMatchObject({ sent: false, retryAfterMs: 30_000 });
    expect(await withinLimits('other', at(30), fine)).toBe('fine');
    expect(await withinLimits('one', at(60), fine)).toBe('fine');
    await expect(withinLimits('one', at(120), fine)).rejects.toMatchObject({ retryAfterMs: 1_680_000 });
  });

  it('are divided among the running processes, but each process may send at least three requests', async () => {
    const withinLimits = limitRate([{ requests: 20, seconds: 1 }]);
    onTestFinished(() => void (liveProcesses.count = 1));
    for (const [processes, share] of [
      [1, 20],
      [4, 5],
      [6, 3],
      [20, 3],
    ] as const) {
      liveProcesses.count = processes;
      const asked = Array.from({ length: 20 }, () => withinLimits(`of ${processes}`, at(0), fine));
      const allowed = (await Promise.allSettled(asked)).filter(({ status }) => status === 'fulfilled');
      expect(allowed).toHaveLength(share);
    }
  });

  it("apply only to the caller that got a POS's Retry-After", async () => {
    const withinLimits = limitRate([]);
    const refused = (): Promise<never> =>
      Promise.reject(new TryAgain('429', { sent: false, httpStatus: 429, retryAfterMs: 5_000 }));
    await expect(withinLimits('one', at(0), refused)).rejects.toThrow('429');
    await expect(withinLimits('one', at(4), fine)).rejects.toMatchObject({ sent: false, retryAfterMs: 1_000 });
    expect(await withinLimits('other', at(4), fine)).toBe('fine');
    expect(await withinLimits('one', at(5), fine)).toBe('fine');
  });

  it('are not changed by other failures', async () => {
    const withinLimits = limitRate([]);
    await expect(
      withinLimits('one', at(0), () => Promise.reject(new TryAgain('no', { sent: true }))),
    ).rejects.toThrow();
    expect(await withinLimits('one', at(0), fine)).toBe('fine');
  });
});

describe('a request to a POS', () => {
  it('has a Content-Type only with a body', async () => {
    const asked: Request[] = [];
    const ask = (json?: unknown): Promise<unknown> =>
      callPos({
        method: 'PUT',
        url: 'https://pos.test',
        json,
        signal: AbortSignal.timeout(5_000),
        fetch: async (request) => {
          asked.push(request as Request);
          return new Response('{}');
        },
      });
    await ask({ amount: JSON.rawJSON('12.90') });
    await ask();
    const sent = asked.map(async (request) => [request.headers.get('content-type'), await request.text()]);
    expect(await Promise.all(sent)).toEqual([
      ['application/json', '{"amount":12.90}'],
      [null, ''],
    ]);
  });

  it('is named in errors by its route, or without a route by its origin', async () => {
    const ask = (url: string, route?: string): Promise<unknown> =>
      callPos({
        method: 'POST',
        url,
        ...(route !== undefined && { route }),
        signal: AbortSignal.timeout(5_000),
        fetch: () => Promise.resolve(new Response(null, { status: 500 })),
      });
    const url = 'https://pos.test/hooks/abc/orders?key=def#ghi';
    await expect(ask(url)).rejects.toThrow(/^POST https:\/\/pos\.test\/…: the POS answered 500$/);
    await expect(ask(url, '/hooks/{hook}')).rejects.toThrow(/^POST https:\/\/pos\.test\/hooks\/\{hook\}: the POS/);
    await expect(ask('abc def')).rejects.toThrow(/^POST \(not a URL\)\/…: /);
  });

  it.each([
    ['/v2/orders/CAISENgvlJ6jLWAzERDzjyHVybY/pay?a=b', '/v2/orders/{id}/pay'],
    ['/location/orders/5dpm9', '/location/orders/{id}'],
    ['/o/op/1/order/toGo', '/o/op/1/order/toGo'],
    ['/authentication/v1/login', '/authentication/v1/login'],
  ])('has the route $1 for the path $0', (path, route) => {
    expect(routeOf(path)).toBe(route);
  });
});

describe('a call with a token', () => {
  function credentials(...tokens: string[]): Credentials & { rejected: (string | undefined)[] } {
    const rejected: (string | undefined)[] = [];
    return {
      rejected,
      accessToken: async (about) => {
        rejected.push(about.rejected);
        return tokens.shift() ?? expect.unreachable('asked too often');
      },
    };
  }
  const grant = { seed: {}, obtain: () => Promise.reject(new Error('not here')) };
  const answer = { status: 200, headers: new Headers(), json: {} };
  const refusal = (httpStatus: number): NeedsOperator => new NeedsOperator('no', { httpStatus });

  it('is repeated once with a fresh token after 401', async () => {
    const kept = credentials('old', 'new');
    const used: string[] = [];
    const call = async (token: string): Promise<never> => {
      used.push(token);
      throw refusal(401);
    };
    await expect(callWithToken(kept, grant, call)).rejects.toMatchObject({ httpStatus: 401 });
    expect(used).toEqual(['old', 'new']);
    expect(kept.rejected).toEqual([undefined, 'old']);
  });

  it('is not repeated after 401 if there is no other token', async () => {
    let calls = 0;
    const call = async (): Promise<never> => {
      calls += 1;
      throw refusal(401);
    };
    await expect(callWithToken(credentials('same', 'same'), grant, call)).rejects.toMatchObject({ httpStatus: 401 });
    expect(calls).toBe(1);
  });

  it('is not repeated after 403 or success', async () => {
    await expect(callWithToken(credentials('a'), grant, () => Promise.reject(refusal(403)))).rejects.toThrow();
    expect(await callWithToken(credentials('a'), grant, async () => answer)).toBe(answer);
  });
});

describe('inMemoryCredentials', () => {
  const credentials = inMemoryCredentials(() => new Date());
  const failing = (error: Error) =>
    credentials.accessToken({
      seed: {},
      obtain: async () => {
        throw error;
      },
    });

  it.each([
    ['a lost answer', new TryAgain('no answer', { sent: true, httpStatus: 502, retryAfterMs: 7 }), [502, 7]],
    ['a bug', new TypeError('no answer'), []],
  ])(
    'throws TryAgain with sent: false if the token request fails with %s',
    async (_name, error, [httpStatus, retryAfterMs]) => {
      const meaning = { name: 'TryAgain', message: 'no answer', sent: false, httpStatus, retryAfterMs };
      await expect(failing(error)).rejects.toMatchObject(meaning);
    },
  );

  it('throws the NeedsOperator of the token request unchanged', async () => {
    const error = new NeedsOperator('reconnect needed');
    await expect(failing(error)).rejects.toBe(error);
  });
});

describe('errors of all providers', () => {
  it('GiveUp has a general reason unless the provider gives a more precise one', () => {
    expect(neverTaken('no', { httpStatus: 422 })).toMatchObject({ reason: NOT_TAKEN, reasonCode: 'technical' });
    expect(neverTaken('no', { reason: 'Too far.', reasonCode: 'out_of_area' })).toMatchObject({ reason: 'Too far.' });
    expect(tooLate('no', 409)).toMatchObject({ name: 'GiveUp', reasonCode: 'other', httpStatus: 409 });
  });

  it('a webhook without an id is refused with the names of the expected fields', () => {
    refuseNameless({ id: undefined, reference: 'order-1' });
    expect(() => refuseNameless({ id: undefined, reference: undefined })).toThrow('id and reference are missing');
  });
});

describe('a signature', () => {
  const [secret, body] = ['s', Buffer.from('{}')];
  const verify = (signature: string, prefix?: string, encoding: 'hex' | 'base64' = 'hex') =>
    verifyHmac(
      { headers: { 'x-signature': signature } },
      { header: 'x-signature', secret, signed: ['1.', body], encoding, ...(prefix !== undefined && { prefix }) },
    );
  const right = (encoding: 'hex' | 'base64') => createHmac('sha256', secret).update('1.{}').digest(encoding);

  it('covers all signed parts, in hex of either case or in base64', () => {
    verify(right('hex'));
    verify(right('hex').toUpperCase());
    verify(right('base64'), undefined, 'base64');
    expect(() => verify(right('base64').toLowerCase(), undefined, 'base64')).toThrow(NotAuthentic);
  });

  it('is accepted by any of several secrets, and refused without secrets', () => {
    const by =
      (...secrets: string[]) =>
      () =>
        verifyHmac(
          { headers: { 'x-signature': right('hex') } },
          { header: 'x-signature', secret: secrets, signed: ['1.', body], encoding: 'hex' },
        );
    by('other', secret)();
    expect(by('other')).toThrow(NotAuthentic);
    expect(by()).toThrow(NotAuthentic);
  });

  it('is accepted if it is one of several in a repeated header', () => {
    const [ours, other] = [right('hex'), '0'.repeat(64)];
    for (const given of [`${ours}, ${other}`, `${other},${ours}`, ` ${ours} `]) verify(given);
    expect(() => verify(`${other}, ${other}`)).toThrow(NotAuthentic);
  });

  it('is refused without its exact prefix', () => {
    verify(`sha256=${right('hex')}`, 'sha256=');
    for (const wrong of [right('hex'), `sha1=${right('hex')}`, `sha256=sha256=${right('hex')}`, 'sha256=', 'sha256']) {
      expect(() => verify(wrong, 'sha256='), wrong).toThrow(NotAuthentic);
    }
    expect(() => verify(`sha256=${right('hex')}`)).toThrow(NotAuthentic);
  });
});
