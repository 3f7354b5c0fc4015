import { describe, expect, it } from 'vitest';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { blankToken, holdsToken } from '../../../src/core/statuses/store-webhooks.ts';

const TOKEN = makeToken('exw_');
const OLD = 'b_-'.repeat(3) + 'Jx7'.repeat(11) + 'Q';
const every = (text: string): string => text.replaceAll(/./g, (char) => `%${char.charCodeAt(0).toString(16)}`);

describe('our token in a header', () => {
  it.each([
    ['as it is', `/webhook/x/y?token=${TOKEN}&a=b`, '/webhook/x/y?token=[token]&a=b'],
    ['twice, as it is and encoded', `${TOKEN} ${TOKEN.replaceAll('_', '%5f')}`, '[token] [token]'],
    ['in a URL within a URL within a URL', every(every(every(`?token=${TOKEN}`))), '?token=[token]'],
  ])('%s is blanked', (_how, value, blanked) => {
    expect(blankToken(value, TOKEN)).toBe(blanked);
  });

  it.each(['till/1.0', 'v1,100%25sure%zz%', '%E2%82%AC', '%'.repeat(10_000)])(
    'is not in %.20s, which stays as it is',
    (value) => {
      expect(blankToken(value, TOKEN)).toBe(value);
    },
  );
});

it.each([
  ['as it is', OLD],
  ['percent-encoded', OLD.replaceAll('_', '%5F').replaceAll('-', '%2d')],
  ['escaped as in JSON', OLD.replaceAll('_', String.raw`\u005f`)],
])('our token in a body is found %s', (_how, written) => {
  expect(holdsToken(Buffer.from(`{"url":"https://x.test/?token=${written}"}`), OLD)).toBe(true);
  expect(holdsToken(Buffer.from(`{"url":"https://x.test/?token=${written.slice(0, 20)}"}`), OLD)).toBe(false);
});
