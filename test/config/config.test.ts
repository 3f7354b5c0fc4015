import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CONFIG_NAMES, REMOVED, readConfig, readConfigOf } from '../../src/config/config.ts';

const GOOD_KEY = randomBytes(32).toString('base64');
const env = {
  DATABASE_URL: 'postgres://expediter@127.0.0.1:5432/expediter',
  ORDER_API_URL: 'http://127.0.0.1:9/graphql',
  GOOGLE_CLOUD_PROJECT: 'test',
  PUSH_AUTH: 'off',
  HOST: '127.0.0.1',
  SETTINGS_KEY: `test:${Buffer.alloc(32, 7).toString('base64')}`,
};

it('ignores white space around every variable', () => {
  const full = {
    ...env,
    ORDER_API_TOKEN: 'token',
    PUSH_AUDIENCE: 'https://x',
    STATUS_TOPIC: 'statuses',
    POOL_SIZE: '12',
  };
  const padded = Object.fromEntries(Object.entries(full).map(([name, value]) => [name, ` \t${value}\r\n`]));
  expect(readConfig(padded)).toEqual(readConfig(full));
  expect(readConfig({ ...env, SPILL_TOPIC: '\n' })).toEqual(readConfig(env));
});

it.each(CONFIG_NAMES)('refuses %s in quotation marks', (name) => {
  for (const mark of ['"', "'"]) {
    expect(() => readConfig({ ...env, [name]: `${mark}hidden${mark}` })).toThrow(`${name}: is in quotation marks`);
    expect(() => readConfig({ ...env, [name]: `${mark}hidden${mark}` })).not.toThrow('hidden');
  }
});

it.each([
  ['ORDER_API_TOKEN', 'hidden\nhidden'],
  ['PUSH_AUDIENCE', 'https://expediter.example.com/\npubsub/push'],
  ['STATUS_TOPIC', 'order-\nstatus'],
  ['OIDC_CLIENT_SECRET', 'hidden\nhidden'],
  ['ORDER_MODULE', '/etc/expediter/\nmap-order.ts'],
  ['DATABASE_URL', 'postgres://expediter@db/\nexpediter'],
])('refuses %s with a line break', (name, value) => {
  expect(() => readConfig({ ...env, [name]: value })).toThrow(`${name}: has a line break`);
  expect(() => readConfig({ ...env, [name]: value })).not.toThrow('hidden');
});

it.each(['STATUS_WEBHOOK', 'NOTIFY_WEBHOOK', 'ATTENTION_WEBHOOK'])(
  'refuses a %s_URL that may not be called, at the start and without its text',
  (name) => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const secrets = { STATUS_WEBHOOK_SECRET: secret, NOTIFY_WEBHOOK_SECRET: secret, PUBLIC_URL: 'https://x' };
    const read = (more = {}) => readConfig({ ...env, ...secrets, [`${name}_URL`]: 'http://10.0.0.1/hidden', ...more });
    expect(read).toThrow(`${name}_URL: may not be called: use https and a public address, or add its host to`);
    expect(read).not.toThrow('hidden');
    expect(() => read({ ALLOW_PRIVATE_HOSTS: '10.0.0.0/8' })).not.toThrow();
  },
);

it('refuses ORDER_API_TOKEN with a space', () => {
  expect(() => readConfig({ ...env, ORDER_API_TOKEN: 'Bearer hidden' })).toThrow('ORDER_API_TOKEN: has white space');
});

it.each([
  [
    'keywords and values of libpq',
    'host=db user=expediter password=hidden',
    'is in the form of keywords and values: write',
  ],
  ['another database', 'mysql://db/hidden', 'is not a postgres URL: write'],
  ['a # in the password', 'postgres://expediter:hid#den@db/expediter', 'has a # in it: write %23'],
  ['several hosts', 'postgres://expediter:hidden@db1:5432,db2:5432/expediter', 'names several hosts: write one'],
  ['several hosts without ports', 'postgres://db1,db2/expediter', 'names several hosts'],
  ['a user and no host', 'postgres://hidden@/expediter?host=/cloudsql/x', 'has no host: for a socket write'],
  ['a / in the password', 'postgres://expediter:hid/den@db/expediter', 'is not a URL: percent-encode the password'],
])('says what to write in place of a DATABASE_URL with %s', (_what, url, problem) => {
  for (const name of ['DATABASE_URL', 'OWNER_DATABASE_URL']) {
    const read = (): unknown => readConfig({ ...env, [name]: url });
    expect(read).toThrow(`${name}: ${problem}`);
    expect(read).not.toThrow(/hid#?\/?den/);
  }
});

it.each([
  'postgres://expediter:a,b@db:5432/expediter?sslmode=verify-full',
  'postgresql://expediter@localhost/expediter?host=/run/postgresql',
  'postgres://expediter@%2Frun%2Fpostgresql/expediter',
  'postgres:///expediter?host=/run/postgresql',
  'postgres://expediter:%23%2F%40@[::1]:5432/expediter',
])('accepts the DATABASE_URL %s', (url) => {
  expect(readConfig({ ...env, DATABASE_URL: url }).DATABASE_URL).toBe(url);
});

it('keeps webhooks for 14 days and member data for 30 by default', () => {
  expect(readConfig(env)).toMatchObject({ WEBHOOK_RETENTION_DAYS: 14, PII_RETENTION_DAYS: 30 });
  expect(readConfig({ ...env, PII_RETENTION_DAYS: '14' })).toMatchObject({ PII_RETENTION_DAYS: 14 });
});

it.each([
  [
    'shorter than that of webhooks',
    { PII_RETENTION_DAYS: '13' },
    'PII_RETENTION_DAYS: is less than WEBHOOK_RETENTION_DAYS',
  ],
  [
    'shorter than that of webhooks, because that was made longer',
    { WEBHOOK_RETENTION_DAYS: '31' },
    'PII_RETENTION_DAYS: is less',
  ],
  ['not a number', { PII_RETENTION_DAYS: 'a month' }, 'PII_RETENTION_DAYS: is not a whole number'],
  [
    'shorter than that of unmatched webhooks',
    { WEBHOOK_RETENTION_DAYS: '1' },
    'WEBHOOK_RETENTION_DAYS: is less than 2',
  ],
])('refuses a retention that is %s', (_what, wrong, message) => {
  expect(() => readConfig({ ...env, ...wrong })).toThrow(message);
});

it('accepts OTEL_TRACES_SAMPLER_ARG from 0 to 1, and sets 1 by default', () => {
  expect(readConfig(env)).toMatchObject({ OTEL_TRACES_SAMPLER_ARG: 1 });
  expect(readConfig({ ...env, OTEL_TRACES_SAMPLER_ARG: '0.05' })).toMatchObject({ OTEL_TRACES_SAMPLER_ARG: 0.05 });
  for (const wrong of ['-0.1', '1.01', 'all', 'NaN']) {
    const message = 'OTEL_TRACES_SAMPLER_ARG: is not a number from 0 to 1';
    expect(() => readConfig({ ...env, OTEL_TRACES_SAMPLER_ARG: wrong }), wrong).toThrow(message);
  }
});

it('refuses a removed variable, and says what to do instead', () => {
  for (const [name, instead] of Object.entries(REMOVED)) {
    const message = `${name}: was removed: ${instead}. Remove it`;
    expect(() => readConfig({ ...env, [name]: 'x' })).toThrow(message);
    expect(() => readConfigOf({ [name]: 'x' }, 'POOL_SIZE')).toThrow(message);
    expect(() => readConfig({ ...env, [name]: '' })).not.toThrow();
    expect(CONFIG_NAMES).not.toContain(name);
  }
});

it.each([
  ['shorter than 43 characters', 'x'.repeat(23), 'OPERATOR_TOKEN: has fewer than 43 characters'],
  ['not valid in a header', `${'x'.repeat(43)} y`, 'OPERATOR_TOKEN: has a space or another character'],
])('an operator token that is %s is refused, and not printed', (_what, token, message) => {
  expect(() => readConfig({ ...env, OPERATOR_TOKEN: token })).toThrow(message);
  expect(() => readConfig({ ...env, OPERATOR_TOKEN: token })).not.toThrow(token);
  expect(readConfig({ ...env, OPERATOR_TOKEN })).toMatchObject({ OPERATOR_TOKEN });
});

it.each([
  ['copied from an example', 'c2l4dGVlbiB0aW1lcyB0d28gbWFrZXMgMzIgYnl0ZXM='],
  ['of a few different bytes', Buffer.alloc(32, 'secret').toString('base64')],
])('a settings key that is %s is accepted only on this machine, and not printed', (_what, key) => {
  const weak = { ...env, SETTINGS_KEY: `good:${GOOD_KEY},weak:${key}` };
  expect(() => readConfig(weak)).not.toThrow();
  const beyond = {
    ...weak,
    HOST: '0.0.0.0',
    PUSH_AUTH: 'oidc',
    PUSH_AUDIENCE: 'https://x',
    PUSH_SERVICE_ACCOUNT: 'push@example.com',
  };
  expect(() => readConfig(beyond)).toThrow('SETTINGS_KEY: has a key that can be guessed');
  expect(() => readConfig(beyond)).not.toThrow(key);
  expect(() => readConfig({ ...beyond, SETTINGS_KEY: `good:${GOOD_KEY}` })).not.toThrow();
});

it.each(['ORDER_API_URL', 'STATUS_WEBHOOK_URL', 'NOTIFY_WEBHOOK_URL', 'ATTENTION_WEBHOOK_URL', 'OIDC_ISSUER'])(
  '%s with a password is refused, because fetch sends nothing to it, and not quoted',
  (name) => {
    const read = (): unknown => readConfig({ ...env, [name]: 'https://user:hunter2@orders.example.com/' });
    expect(read).toThrow(`${name}: has a user or a password`);
    expect(read).not.toThrow('hunter2');
  },
);

it('.env.example has no value for SETTINGS_KEY', () => {
  expect(readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')).not.toMatch(/^SETTINGS_KEY=/m);
});

it.each<[string, Record<string, string>, string | undefined]>([
  ['all variables is accepted', {}, undefined],
  ['a group in place of a domain is accepted', { OIDC_ALLOWED_DOMAINS: '', OIDC_ALLOWED_GROUPS: 'team' }, undefined],
  ['an issuer on this machine is accepted', { OIDC_ISSUER: 'http://127.0.0.1:8090' }, undefined],
  ['an issuer over plain http is refused', { OIDC_ISSUER: 'http://issuer.example.com' }, 'OIDC_ISSUER: is not https'],
  [
    'an issuer that is no URL is refused',
    { OIDC_ISSUER: 'http:nothing at all' },
    'OIDC_ISSUER: is not an http or https URL',
  ],
  ['scopes without openid is refused', { OIDC_SCOPES: 'email openids' }, 'OIDC_SCOPES: leaves out openid'],
  ['no client id is refused', { OIDC_CLIENT_ID: '' }, 'OIDC_CLIENT_ID: and OIDC_ISSUER must both be set'],
  ['no CONSOLE_URL is refused', { CONSOLE_URL: '' }, 'CONSOLE_URL: is required with OIDC_ISSUER'],
  [
    'no allowed domain or group is refused',
    { OIDC_ALLOWED_DOMAINS: '' },
    'OIDC_ALLOWED_DOMAINS: and OIDC_ALLOWED_GROUPS are unset',
  ],
])('sign-in by OIDC with %s', (_what, change, problem) => {
  const read = (): unknown =>
    readConfig({
      ...env,
      OIDC_ISSUER: 'https://issuer.example.com',
      OIDC_CLIENT_ID: 'console',
      OIDC_ALLOWED_DOMAINS: 'example.com',
      CONSOLE_URL: 'https://console.example.com/',
      ...change,
    });
  if (problem === undefined) expect(read).not.toThrow();
  else expect(read).toThrow(problem);
});

it.each(['10.0.0.0/33', 'https://pos.lan', 'pos.lan:8080', '*.lan', '2130706433', 'pos lan', '10.0.0/8', '::1%lo'])(
  'refuses an invalid private host without printing it: %s',
  (wrong) => {
    const problem = { ...env, ALLOW_PRIVATE_HOSTS: `pos.lan,${wrong}` };
    expect(() => readConfig(problem)).toThrow('ALLOW_PRIVATE_HOSTS: entry 2 is not a host name, address or range');
    expect(() => readConfig(problem)).not.toThrow(wrong);
  },
);

it('removes the slash at the end of PUBLIC_URL', () => {
  const publicUrl = 'https://expediter.example.com';
  expect(readConfig({ ...env, PUBLIC_URL: `${publicUrl}/` }).PUBLIC_URL).toBe(publicUrl);
  expect(readConfig({ ...env, PUBLIC_URL: publicUrl }).PUBLIC_URL).toBe(publicUrl);
});

it.each([
  ['10.0.0.1, 10.0.0.0/33', 'TRUSTED_PROXIES: entry 2 is not an address or a network'],
  ['0.0.0.0/0', 'TRUSTED_PROXIES: entry 1 is every address: name only your own proxies'],
  ['::1, ::/0', 'TRUSTED_PROXIES: entry 2 is every address'],
])('names the wrong entry of TRUSTED_PROXIES: %s', (TRUSTED_PROXIES, message) => {
  expect(() => readConfig({ ...env, TRUSTED_PROXIES })).toThrow(message);
});

const OPERATOR_TOKEN = 'hg4WDwc6QGYGEkFfoQhXj0cy0hXAyjLpln7fnmbGCXg';

it('requires OPERATOR_PORT with OPERATOR_TOKEN if HOST is not this machine', () => {
  const beyond = { ...env, OPERATOR_TOKEN, HOST: '10.0.0.5' };
  expect(() => readConfig(beyond)).toThrow('OPERATOR_PORT: is unset, and HOST is not a loopback');
  expect(() => readConfig({ ...beyond, OPERATOR_PORT: '8081' })).not.toThrow('OPERATOR_PORT');
  // The process of operators alone.
  expect(() => readConfig({ ...beyond, OPERATOR_PORT: '8080', PORT: '8080' })).not.toThrow('OPERATOR_PORT');
});

it('needs no OPERATOR_PORT if HOST is this machine', () => {
  expect(readConfig({ ...env, OPERATOR_TOKEN, HOST: '127.0.0.1' }).OPERATOR_PORT).toBeUndefined();
});

describe('a secret in a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'expediter-secret-'));
  const file = join(directory, 'secret');
  afterAll(() => rmSync(directory, { recursive: true }));

  it.each(['OPERATOR_TOKEN', 'ORDER_API_TOKEN', 'OIDC_CLIENT_SECRET'] as const)('is read for %s', (name) => {
    writeFileSync(file, `${OPERATOR_TOKEN}\n`);
    const { [name]: read } = readConfig({ ...env, [name]: '', [`${name}_FILE`]: file, OPERATOR_PORT: '8081' });
    expect(read).toBe(OPERATOR_TOKEN);
    expect(readConfigOf({ [`${name}_FILE`]: file }, name)).toEqual({ [name]: OPERATOR_TOKEN });
  });

  it.each(['DATABASE_URL', 'NOTIFY_WEBHOOK_URL', 'ATTENTION_WEBHOOK_URL'] as const)(
    'is checked like the variable %s, and not printed',
    (name) => {
      writeFileSync(file, 'mysql://db.internal/secret-name');
      const read = (): unknown => readConfigOf({ [`${name}_FILE`]: file }, name);
      expect(read).toThrow(`${name}: `);
      expect(read).not.toThrow('secret-name');
    },
  );

  it('is read only by a command that needs the secret', () => {
    expect(readConfigOf({ SETTINGS_KEY_FILE: '/not/there' }, 'LOG_LEVEL')).toEqual({ LOG_LEVEL: 'info' });
  });

  it.each([
    ['next to its variable', 'x', { OPERATOR_TOKEN }, 'OPERATOR_TOKEN_FILE: is set, and so is OPERATOR_TOKEN'],
    ['that is empty', '\n', {}, 'OPERATOR_TOKEN_FILE: names an empty file'],
    ['that is not there', undefined, {}, 'OPERATOR_TOKEN_FILE: names a file that cannot be read (ENOENT)'],
  ])('%s is refused together with other wrong variables', (_what, text, more, problem) => {
    rmSync(file, { force: true });
    if (text !== undefined) writeFileSync(file, text);
    const read = (): unknown => readConfig({ ...env, ...more, OPERATOR_TOKEN_FILE: file, PORT: 'http' });
    expect(read).toThrow(problem);
    expect(read).toThrow('PORT: is not a whole number');
  });
});

it('refuses SPILL_TOPIC if webhooks are kept for less than eight days', () => {
  const spill = { SPILL_TOPIC: 'spill' };
  expect(() => readConfig({ ...env, ...spill, WEBHOOK_RETENTION_DAYS: '7' })).toThrow(
    'WEBHOOK_RETENTION_DAYS: is less than 8 days',
  );
  expect(readConfig({ ...env, ...spill })).toMatchObject(spill);
});

describe('keys of follow tokens', () => {
  const keys = { FOLLOW_TOKEN_KEYS: JSON.stringify({ keys: [{ kty: 'oct', k: 'x'.repeat(43) }] }) };
  const url = { FOLLOW_TOKEN_KEYS: 'https://orders.example.com/jwks' };
  const audience = { FOLLOW_TOKEN_AUDIENCE: 'follow' };

  it.each([keys, url])('are refused without FOLLOW_TOKEN_AUDIENCE', (either) => {
    const message = 'FOLLOW_TOKEN_AUDIENCE: is required with FOLLOW_TOKEN_KEYS';
    expect(() => readConfig({ ...env, ...either })).toThrow(message);
    expect(readConfig({ ...env, ...either, ...audience })).toMatchObject({ ...audience, FOLLOW_STREAMS_MAX: 10_000 });
  });

  it('are refused if their URL is invalid', () => {
    const wrong = { ...env, ...audience, FOLLOW_TOKEN_KEYS: 'https://' };
    expect(() => readConfig(wrong)).toThrow('FOLLOW_TOKEN_KEYS: is not a URL');
  });

  it('are refused, and not printed, if one key is wrong', () => {
    const wrong = { ...env, ...audience, FOLLOW_TOKEN_KEYS: keys.FOLLOW_TOKEN_KEYS.replace('oct', 'RSA') };
    expect(() => readConfig(wrong)).toThrow('FOLLOW_TOKEN_KEYS: key 1 is not a public key');
    expect(() => readConfig(wrong)).not.toThrow('xxx');
  });
});

it('accepts origins of pages and apps in MEMBER_ORIGINS', () => {
  expect(readConfig(env).MEMBER_ORIGINS).toEqual([]);
  const origins = ['https://order.example.com', 'capacitor://localhost', 'http://127.0.0.1:5173', 'http://[::1]:5173'];
  expect(readConfig({ ...env, MEMBER_ORIGINS: origins.join(' , ') }).MEMBER_ORIGINS).toEqual(origins);
});

it.each([
  'https://order.example.com/',
  'https://order.example.com/menu',
  'https://order.example.com?',
  'https://order.example.com:443',
  'https://Order.example.com',
  'https://ada@order.example.com',
  'https://*.example.com',
  'https://bücher.example',
  'order.example.com',
  'file:///',
  'null',
  '*',
])('refuses the invalid origin %s in MEMBER_ORIGINS', (wrong) => {
  const origins = { ...env, MEMBER_ORIGINS: `https://order.example.com,${wrong}` };
  expect(() => readConfig(origins)).toThrow('MEMBER_ORIGINS: entry 2 is not an origin');
});
