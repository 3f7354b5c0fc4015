import { expect, it } from 'vitest';
import { asciiAddress, Email } from '../../../src/core/domain/email.ts';

it.each(['kitchen@nord.example', 'kitchen@müller.example', 'chef@مثال.example', 'a+b@sub.日本.example'])(
  '%s is accepted as an e-mail address',
  (address) => {
    expect(Email.safeParse(address).success).toBe(true);
  },
);

it.each([
  'nobody',
  '@müller.example',
  'a@',
  'a@b',
  'a b@müller.example',
  'a@müller..example',
  'a@b@',
  'a@exa mple.com',
])('%j is refused as an e-mail address', (address) => {
  expect(Email.safeParse(address).error?.issues[0]?.message).toBe('is not an e-mail address');
});

it('the mail server gets the domain of an address in Punycode', () => {
  expect(asciiAddress('kueche@müller.example')).toBe('kueche@xn--mller-kva.example');
});
