import { describe, expect, it } from 'vitest';
import { GiveUp, TryAgain } from '../../../src/core/domain/errors.ts';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { hideIn, hideSecrets, noteTokens, secretsOf } from '../../../src/core/locations/hide-secrets.ts';
import { holdsToken } from '../../../src/core/statuses/store-webhooks.ts';
import { deliverect } from '../../../src/providers/deliverect/index.ts';
import { standard } from '../../../src/providers/standard/index.ts';
import { disguisesOf } from '../../support/canaries.ts';

const TOKEN = makeToken('exw_');
const OLD = 'b_-'.repeat(3) + 'Jx7'.repeat(11) + 'Q';
const every = (text: string): string => text.replaceAll(/./g, (char) => `%${char.charCodeAt(0).toString(16)}`);

describe('a secret in a text', () => {
  it.each([
    ['as it is', `/webhook/x/y?token=${TOKEN}&a=b`, '/webhook/x/y?token=[secret]&a=b'],
    ['twice, as it is and encoded', `${TOKEN} ${TOKEN.replaceAll('_', '%5f')}`, '[secret] [secret]'],
    ['in a URL within a URL within a URL', every(every(every(`?token=${TOKEN}`))), '?token=[secret]'],
  ])('is hidden if it occurs %s', (_how, value, blanked) => {
    expect(hideIn(value, [TOKEN])).toBe(blanked);
  });

  it('is hidden in every encoding, at any offset', () => {
    for (const secret of ['s3cret/+"ä\\ of ours', TOKEN, '61bcc34f657cc48c23eb60d5', 'correcthorsebattery']) {
      for (const before of ['', 'a', 'user:', '{"key":"']) {
        for (const [how, text] of Object.entries(disguisesOf(`${before}${secret}" and more`))) {
          const hidden = hideIn(`the POS said ${text}.`, [secret]);
          const found = Object.values(disguisesOf(secret)).filter((each) => hidden.includes(each));
          expect(found, `${how} of ${before}${secret}`).toEqual([]);
        }
      }
    }
  });

  it.each(['till/1.0', 'v1,100%25sure%zz%', '%E2%82%AC', '%'.repeat(100), 'the POS answered 500: check ordersUrl'])(
    'is the only thing that is hidden: a text without the secret stays unchanged: %s',
    (value) => {
      expect(hideIn(value, [TOKEN])).toBe(value);
    },
  );

  it('is hidden even if the end of the text cuts it off', () => {
    expect(hideIn(`said: ${TOKEN.slice(0, -3)}`, [TOKEN])).toBe('said: [secret]');
    expect(hideIn(`said: ${TOKEN.slice(0, 7)}`, [TOKEN])).toBe(`said: ${TOKEN.slice(0, 7)}`);
  });

  it('that could be an ordinary word is hidden only as a whole word in a sentence', () => {
    expect(hideIn('the till lighthouse said: "till"', ['till', 'light'])).toBe(
      'the [secret] lighthouse said: "[secret]"',
    );
    for (const word of ['ready', '1', 'en_route']) expect(hideIn(word, ['ready', '1', 'en'])).toBe(word);
  });
});

describe('an answer of a POS', () => {
  it('keeps its dates and new settings, and loses an id that contains a secret', () => {
    const at = new Date();
    const answer = { providerOrderId: `x${TOKEN}`, nativeStatus: TOKEN, settings: { accessToken: TOKEN }, at, n: 1 };
    expect(hideSecrets([answer, undefined, null], [TOKEN])).toEqual([
      { providerOrderId: undefined, nativeStatus: '[secret]', settings: { accessToken: TOKEN }, at, n: 1 },
      undefined,
      null,
    ]);
  });

  it('keeps a secret that could be a name in ids and URLs, and hides it in a sentence', () => {
    const guid = '9c59d4ab-8242-450f-8f36-b16e1b3ab802';
    const secrets = ['club-north-7', guid];
    const answer = { providerOrderId: 'club-north-7-0042', trackingUrl: `https://pos.test/${guid}/42` };
    expect(hideSecrets(answer, secrets)).toEqual(answer);
    expect(hideSecrets(`no order at ${guid} of club-north-7`, secrets)).toBe('no order at [secret] of [secret]');
  });

  it('loses the secret in all its texts if the answer is an error', () => {
    const error = new GiveUp(`no ${TOKEN}`, { reason: `never ${TOKEN}`, httpStatus: 400 });
    const outer = new TryAgain(`again ${TOKEN}`, { sent: true, cause: error as never });
    expect(hideSecrets(outer, [TOKEN])).toBe(outer);
    expect(outer).toMatchObject({ sent: true, message: 'again [secret]' });
    expect(error).toMatchObject({ reason: 'never [secret]', httpStatus: 400 });
    expect(`${outer.stack} ${error.stack}`).not.toContain(TOKEN);
  });

  it('is replaced by another error if the answer is an error that cannot be changed', () => {
    const frozen = Object.freeze(new TryAgain(`again ${TOKEN}`, { sent: true }));
    expect(() => hideSecrets(frozen, [TOKEN])).toThrow(/^(message|stack) cannot be changed$/);
  });
});

it('the secrets of settings are their hidden values, and the parts of their URLs that could be tokens', () => {
  const ordersUrl = 'https://pos.test/restaurants/a1b2c3d4e5/orders?key=k-1234567#f-1234567';
  expect(secretsOf(standard, { ordersUrl, unsigned: true })).toEqual([
    ordersUrl,
    '/restaurants/a1b2c3d4e5/orders?key=k-1234567',
    '#f-1234567',
    'a1b2c3d4e5',
    'k-1234567',
  ]);
  const settings = {
    channelName: 'expediter',
    channelLinkId: 'abc',
    baseUrl: 'https://x.test/v1',
    itemMap: { a: 'b' },
  };
  expect(secretsOf(deliverect, settings)).toEqual(['abc']);
  // The path of each webhook asks for them: they are looked for once.
  expect(secretsOf(deliverect, settings)).toBe(secretsOf(deliverect, settings));
});

it('tokens that a call obtains count as secrets of that call', async () => {
  const secrets: string[] = [];
  const granting = noteTokens(
    { accessToken: async ({ obtain }) => (await obtain('old', AbortSignal.timeout(1_000))).accessToken },
    secrets,
  );
  const obtain = async (): Promise<{ accessToken: string; refreshToken: string; expiresIn: number }> =>
    Promise.resolve({ accessToken: 'access', refreshToken: 'next', expiresIn: 60 });
  expect(await granting.accessToken({ seed: {}, obtain })).toBe('access');
  expect(new Set(secrets)).toEqual(new Set(['old', 'access', 'next']));
});

it.each([
  ['as it is', OLD],
  ['percent-encoded', OLD.replaceAll('_', '%5F').replaceAll('-', '%2d')],
  ['escaped as in JSON', OLD.replaceAll('_', String.raw`\u005f`)],
])('our token is found in the body of a webhook if it is written %s', (_how, written) => {
  expect(holdsToken(Buffer.from(`{"url":"https://x.test/?token=${written}"}`), OLD)).toBe(true);
  expect(holdsToken(Buffer.from(`{"url":"https://x.test/?token=${written.slice(0, 20)}"}`), OLD)).toBe(false);
});
