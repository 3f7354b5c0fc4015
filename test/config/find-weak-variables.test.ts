import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { findWeakVariables } from '../../src/config/find-weak-variables.ts';
import { startSystem } from '../../world/system/start-system.ts';

const read = (change: Partial<Config>): string[] =>
  findWeakVariables({ TRUSTED_PROXIES: [], ...change } as Config).map(({ name }) => name);

it.each([
  'x'.repeat(43),
  'changeme'.repeat(6),
  'operator-token-'.repeat(3),
  '0123456789abcdef'.repeat(4),
  'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG',
  'please-change-this-token-before-you-use-it-2026',
])('a token that a person wrote is reported as weak: %s', (token) => {
  expect(read({ OPERATOR_TOKEN: token, AVAILABILITY_TOKEN: token })).toEqual(['OPERATOR_TOKEN', 'AVAILABILITY_TOKEN']);
});

it.each([
  ['only zeros', Buffer.alloc(24)],
  ['a sentence', Buffer.from('a secret of 24 letters..')],
  ['the bytes from 0 to 31', Buffer.from(Array.from({ length: 32 }, (_, n) => n))],
])('a key that a person wrote is reported as weak: %s', (_what, key) => {
  const secrets = [`whsec_${randomBytes(32).toString('base64')}`, `whsec_${key.toString('base64')}`];
  expect(read({ NOTIFY_WEBHOOK_SECRET: secrets })).toEqual(['NOTIFY_WEBHOOK_SECRET']);
  expect(read({ STATUS_WEBHOOK_SECRET: secrets })).toEqual(['STATUS_WEBHOOK_SECRET']);
});

it('random bytes are not reported as weak, in any encoding', () => {
  for (let nth = 0; nth < 2_000; nth += 1) {
    for (const encoding of ['base64', 'base64url', 'hex'] as const) {
      const token = randomBytes(32).toString(encoding);
      const key = randomBytes(24).toString('base64');
      expect(read({ OPERATOR_TOKEN: token, AVAILABILITY_TOKEN: token, NOTIFY_WEBHOOK_SECRET: [key] }), token).toEqual(
        [],
      );
    }
  }
});

it.each([
  ['0.0.0.0/1', 'reported as too wide'],
  ['128.0.0.0/1', 'reported as too wide'],
  ['2000::/3', 'reported as too wide'],
  ['10.0.0.0/8', 'accepted'],
  ['fc00::/7', 'accepted'],
  ['127.0.0.1', 'accepted'],
  ['::1', 'accepted'],
])('the network %s in TRUSTED_PROXIES is %s', (proxy, result) => {
  expect(read({ TRUSTED_PROXIES: [proxy] })).toEqual(result === 'reported as too wide' ? ['TRUSTED_PROXIES'] : []);
});

it('the service starts with weak variables, and logs for each a warning that does not show the value', async () => {
  const token = 'operator-token-'.repeat(3);
  const env = { OPERATOR_TOKEN: token, TRUSTED_PROXIES: '128.0.0.0/1' };
  const system = await startSystem({ env, isWeak: true });
  onTestFinished(() => system.stop());
  expect((await fetch(`${system.urls[0]}/readyz`)).status).toBe(200);
  const warnings = system.logged.filter((line) => line.includes('the next major version refuses it'));
  expect(warnings.map((line) => /"message":"(\w+):/.exec(line)?.[1])).toEqual(['OPERATOR_TOKEN', 'TRUSTED_PROXIES']);
  expect(warnings.join()).not.toContain(token);
});

it('.env.example has no weak values', () => {
  const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
  const valueOf = (name: string): string => new RegExp(`^#? ?${name}=(.*)$`, 'm').exec(example)?.[1] ?? '';
  // They say what to put there, and none of them could be used as it is.
  for (const name of ['OPERATOR_TOKEN', 'AVAILABILITY_TOKEN', 'NOTIFY_WEBHOOK_SECRET'])
    expect(valueOf(name), name).toMatch(/^(whsec_)?$/);
  expect(read({ TRUSTED_PROXIES: valueOf('TRUSTED_PROXIES').split(/, ?/) })).toEqual([]);
});
