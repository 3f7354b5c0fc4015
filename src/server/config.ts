import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import { isLoopback, isPlainElsewhere, parseAllowedHosts } from '../core/egress/allowed-hosts.ts';
import { hasWeakKey, parseSettingsKeys } from '../core/locations/settings-key.ts';
import { parseFollowKeys } from '../http/follow/follow-keys.ts';

/** The variables: each with its schema, and an example for the error message. */
const variables = {
  DATABASE_URL: [postgresUrl(), 'postgres://expediter@db.internal:5432/expediter?sslmode=verify-full'],
  OWNER_DATABASE_URL: [
    postgresUrl().optional(),
    'postgres://expediter_owner@db.internal:5432/expediter?sslmode=verify-full',
  ],
  HOST: [z.string().min(1).default('0.0.0.0'), '0.0.0.0'],
  PORT: [integer(0, 65_535).default(8080), '8080'],
  LOG_LEVEL: [z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'), 'info'],

  ORDER_API_URL: [httpUrl(), 'https://orders.example.com/graphql'],
  ORDER_API_TOKEN: [z.string().min(1).optional(), 'the bearer token of the ordering platform'],
  ORDER_QUERY_FILE: [z.string().min(1).optional(), '/etc/expediter/order.graphql'],
  ORDER_MODULE: [z.string().min(1).optional(), '/etc/expediter/map-order.ts'],

  GOOGLE_CLOUD_PROJECT: [z.string().min(1), 'my-project'],
  STATUS_TOPIC: [z.string().min(1).default('order-status'), 'order-status'],
  PUBSUB_EMULATOR_HOST: [z.string().min(1).optional(), '127.0.0.1:8085'],
  SPILL_TOPIC: [z.string().min(1).optional(), 'webhook-spill'],
  SPILL_SUBSCRIPTION: [z.string().min(1).optional(), 'webhook-spill-drain'],
  SPILL_TOKEN_AGE_S: [integer(60, 86_400).default(3600), '3600'],

  PUSH_AUTH: [z.enum(['oidc', 'off']).default('oidc'), 'oidc'],
  PUSH_AUDIENCE: [z.string().min(1).optional(), 'https://expediter.example.com/pubsub/push'],
  PUSH_SERVICE_ACCOUNT: [z.email().optional(), 'push@my-project.iam.gserviceaccount.com'],
  PUSH_ISSUER: [z.string().min(1).default('https://accounts.google.com'), 'https://accounts.google.com'],
  PUSH_JWKS_URL: [
    httpUrl().default('https://www.googleapis.com/oauth2/v3/certs'),
    'https://www.googleapis.com/oauth2/v3/certs',
  ],

  FOLLOW_TOKEN_JWKS_URL: [httpUrl().optional(), 'https://orders.example.com/.well-known/jwks.json'],
  FOLLOW_TOKEN_KEYS: [
    parsedBy(parseFollowKeys).optional(),
    '{"keys":[{"kid":"2026-11","kty":"EC","crv":"P-256","x":"…","y":"…"}]}',
  ],
  FOLLOW_TOKEN_AUDIENCE: [z.string().min(1).optional(), 'https://expediter.example.com/follow'],
  FOLLOW_STREAMS_MAX: [integer(1, 1_000_000).default(10_000), '10000'],
  MEMBER_ORIGINS: [parsedBy(parseOrigins).prefault(''), 'https://order.example.com,capacitor://localhost'],

  SETTINGS_KEY: [
    parsedBy(parseSettingsKeys),
    '2026-01:<32 random bytes in base64>, made with: openssl rand -base64 32',
  ],
  PUBLIC_URL: [baseUrl().optional(), 'https://expediter.example.com'],
  PROVIDER_MODULES: [names(), '@my-club/expediter-provider-acme'],

  ALLOW_PRIVATE_HOSTS: [parsedBy(parseAllowedHosts).prefault(''), 'pos.lan, 10.8.0.0/16'],

  OPERATOR_TOKEN: [
    z
      .string()
      .min(43, { error: 'has fewer than 43 characters, which 32 random bytes have in base64' })
      .regex(/^[\x21-\x7e]+$/, { error: 'has a space or another character that a header cannot carry' })
      .optional(),
    '32 random bytes, made with: openssl rand -base64 32',
  ],
  OPERATOR_HOST: [z.string().min(1).optional(), '127.0.0.1'],
  OPERATOR_PORT: [integer(0, 65_535).optional(), '8081'],
  CONSOLE_URL: [baseUrl().optional(), 'https://console.example.com'],
  OIDC_ISSUER: [httpUrl().optional(), 'https://accounts.google.com'],
  OIDC_CLIENT_ID: [z.string().min(1).optional(), 'the client id that the issuer gave the console'],
  OIDC_CLIENT_SECRET: [z.string().min(1).optional(), 'the secret of that client'],
  OIDC_SCOPES: [
    z
      .string()
      .regex(/(^| )openid( |$)/, { error: 'leaves out openid' })
      .default('openid email profile'),
    'openid email profile groups',
  ],
  OIDC_GROUPS_CLAIM: [z.string().min(1).default('groups'), 'groups'],
  OIDC_ALLOWED_DOMAINS: [names(), 'example.com'],
  OIDC_ALLOWED_GROUPS: [names(), 'platform-team,club-managers'],
  TRUSTED_PROXIES: [parsedBy(parseProxies).prefault(''), '35.191.0.0/16, 130.211.0.0/22'],
  OTEL_EXPORTER_OTLP_ENDPOINT: [httpUrl().optional(), 'http://collector.internal:4318'],
  OTEL_TRACES_SAMPLER_ARG: [share().default(1), '0.1'],

  WEBHOOK_BODY_LIMIT: [integer(1024, 64 * 2 ** 20).default(2 ** 20), '1048576'],
  DROPPED_QUOTA: [integer(2 ** 20, 2 ** 40).default(64 * 2 ** 20), '67108864'],
  REFUSED_KEEP: [integer(0, 48).default(24), '24'],
  BODY_BUDGET: [integer(2 ** 20, 2 ** 32).default(64 * 2 ** 20), '67108864'],
  WEBHOOK_SHARE: [integer(1, 1_000_000).default(100), '100'],
  PLACEMENT_DEADLINE_S: [integer(1, 604_800).default(1800), '1800'],
  MISSING_ORDER_S: [integer(1, 604_800).default(120), '120'],
  PARK_TTL_S: [integer(1, 604_800).default(3600), '3600'],
  ORDER_END_S: [integer(1, 2_592_000).default(86_400), '86400'],
  WEBHOOK_RETENTION_DAYS: [integer(2, 3650).default(14), '14'],
  PII_RETENTION_DAYS: [integer(2, 3650).default(30), '30'],
  AUDIT_RETENTION_DAYS: [integer(30, 3650).default(400), '400'],
  POOL_SIZE: [integer(5, 1000).default(10), '10'],
  DRAIN_DELAY_MS: [integer(0, 60_000).default(2000), '2000'],
  DRAIN_FINISH_MS: [integer(0, 60_000).default(6000), '6000'],
} as const satisfies Record<string, readonly [z.ZodType, string]>;

/** Each may also come from a file, which `NAME_FILE` names. */
const SECRETS = [
  'DATABASE_URL',
  'OWNER_DATABASE_URL',
  'ORDER_API_TOKEN',
  'FOLLOW_TOKEN_KEYS',
  'SETTINGS_KEY',
  'OPERATOR_TOKEN',
  'OIDC_CLIENT_SECRET',
] as const satisfies (keyof typeof variables)[];

const DAY_S = 86_400;

const shape = Object.fromEntries(Object.entries(variables).map(([name, [schema]]) => [name, schema])) as {
  [Name in keyof typeof variables]: (typeof variables)[Name][0];
};

/** Rules between variables are checked even if a single one is wrong, so that all problems are reported at once. */
const always = { when: () => true };
const needsPushIdentity = (name: 'PUSH_AUDIENCE' | 'PUSH_SERVICE_ACCOUNT') => ({
  path: [name],
  error: 'is required while PUSH_AUTH is "oidc"',
  ...always,
});

type OneMapping = { ORDER_MODULE?: string | undefined; ORDER_QUERY_FILE?: string | undefined };
/** Told to whoever reads one of them as well. */
const ONE_MAPPING = [
  ({ ORDER_MODULE, ORDER_QUERY_FILE }: OneMapping) => ORDER_MODULE === undefined || ORDER_QUERY_FILE === undefined,
  { path: ['ORDER_MODULE'], error: 'is set, and so is ORDER_QUERY_FILE: the module has its own query', ...always },
] satisfies [unknown, object];

const Environment = z
  .object(shape)
  .refine(...ONE_MAPPING)
  .refine(({ BODY_BUDGET, WEBHOOK_BODY_LIMIT }) => !(BODY_BUDGET < 4 * WEBHOOK_BODY_LIMIT), {
    path: ['BODY_BUDGET'],
    error:
      'is less than four times WEBHOOK_BODY_LIMIT: one location gets a quarter at most, and could send no such body',
    ...always,
  })
  .refine(({ PII_RETENTION_DAYS, WEBHOOK_RETENTION_DAYS }) => !(PII_RETENTION_DAYS < WEBHOOK_RETENTION_DAYS), {
    path: ['PII_RETENTION_DAYS'],
    error: 'is less than WEBHOOK_RETENTION_DAYS: webhooks hold member data, and would outlive it',
    ...always,
  })
  .refine(({ PARK_TTL_S, WEBHOOK_RETENTION_DAYS }) => !(PARK_TTL_S > WEBHOOK_RETENTION_DAYS * DAY_S), {
    path: ['PARK_TTL_S'],
    error:
      'is more than WEBHOOK_RETENTION_DAYS: an event would wait for its POS id for longer than its webhook is kept',
    ...always,
  })
  .refine(({ SPILL_TOPIC, WEBHOOK_RETENTION_DAYS }) => SPILL_TOPIC === undefined || !(WEBHOOK_RETENTION_DAYS < 8), {
    path: ['WEBHOOK_RETENTION_DAYS'],
    error:
      'is less than 8 days, and SPILL_TOPIC is set: a webhook may wait there for 7 days, and would be deleted soon after it is stored',
    ...always,
  })
  .refine(({ SPILL_TOPIC, SPILL_SUBSCRIPTION }) => SPILL_TOPIC === undefined || SPILL_SUBSCRIPTION !== undefined, {
    path: ['SPILL_SUBSCRIPTION'],
    error: 'is unset, and SPILL_TOPIC is set: what is spilled would never be read',
    ...always,
  })
  .refine(({ SPILL_TOPIC, SPILL_SUBSCRIPTION }) => SPILL_SUBSCRIPTION === undefined || SPILL_TOPIC !== undefined, {
    path: ['SPILL_TOPIC'],
    error: 'is unset, and SPILL_SUBSCRIPTION is set: nothing would be spilled',
    ...always,
  })
  .refine(
    ({ FOLLOW_TOKEN_JWKS_URL, FOLLOW_TOKEN_KEYS }) =>
      FOLLOW_TOKEN_JWKS_URL === undefined || FOLLOW_TOKEN_KEYS === undefined,
    {
      path: ['FOLLOW_TOKEN_KEYS'],
      error: 'is set, and so is FOLLOW_TOKEN_JWKS_URL: keys come from one of them',
      ...always,
    },
  )
  .refine(
    ({ FOLLOW_TOKEN_JWKS_URL, FOLLOW_TOKEN_KEYS, FOLLOW_TOKEN_AUDIENCE }) =>
      (FOLLOW_TOKEN_JWKS_URL ?? FOLLOW_TOKEN_KEYS) === undefined || FOLLOW_TOKEN_AUDIENCE !== undefined,
    {
      path: ['FOLLOW_TOKEN_AUDIENCE'],
      error: 'is required with FOLLOW_TOKEN_JWKS_URL and with FOLLOW_TOKEN_KEYS',
      ...always,
    },
  )
  .refine(
    ({ HOST, OPERATOR_PORT, OPERATOR_TOKEN, OIDC_ISSUER }) =>
      OPERATOR_PORT !== undefined || (OPERATOR_TOKEN ?? OIDC_ISSUER) === undefined || isLoopback(HOST),
    {
      path: ['OPERATOR_PORT'],
      error:
        'is unset, and HOST is not a loopback one: give operators a port that nothing public leads to, or the same as PORT where this process serves operators alone',
      ...always,
    },
  )
  .refine(({ OPERATOR_HOST, OPERATOR_PORT }) => OPERATOR_HOST === undefined || OPERATOR_PORT !== undefined, {
    path: ['OPERATOR_PORT'],
    error: 'is unset, and OPERATOR_HOST is set: operators would be at HOST and PORT all the same',
    ...always,
  })
  .refine(({ OIDC_ISSUER, OIDC_CLIENT_ID }) => (OIDC_ISSUER === undefined) === (OIDC_CLIENT_ID === undefined), {
    path: ['OIDC_CLIENT_ID'],
    error: 'and OIDC_ISSUER are set together, or neither',
    ...always,
  })
  .refine(({ OIDC_ISSUER = '' }) => !isPlainElsewhere(OIDC_ISSUER), {
    path: ['OIDC_ISSUER'],
    error: 'is not https: whoever is in between could sign in as anybody',
    ...always,
  })
  .refine(({ OIDC_ISSUER, CONSOLE_URL }) => OIDC_ISSUER === undefined || CONSOLE_URL !== undefined, {
    path: ['CONSOLE_URL'],
    error: 'is required with OIDC_ISSUER, which sends people back to it',
    ...always,
  })
  .refine(
    ({ OIDC_ISSUER, OIDC_ALLOWED_DOMAINS, OIDC_ALLOWED_GROUPS }) =>
      OIDC_ISSUER === undefined || [OIDC_ALLOWED_DOMAINS, OIDC_ALLOWED_GROUPS].some((each) => each?.length > 0),
    {
      path: ['OIDC_ALLOWED_DOMAINS'],
      error: 'and OIDC_ALLOWED_GROUPS are unset, and OIDC_ISSUER is set: one of them says who may sign in',
      ...always,
    },
  )
  .refine(({ SETTINGS_KEY, HOST }) => isLoopback(HOST) || !(SETTINGS_KEY instanceof Map && hasWeakKey(SETTINGS_KEY)), {
    path: ['SETTINGS_KEY'],
    error: 'has a key that can be guessed, for a loopback HOST only. Make one: openssl rand -base64 32; then rekey',
    ...always,
  })
  .refine(({ PUSH_AUTH, HOST }) => PUSH_AUTH !== 'off' || isLoopback(HOST), {
    path: ['PUSH_AUTH'],
    error: '"off" is for a loopback HOST only: anybody could push',
    ...always,
  })
  .refine(
    ({ PUSH_AUTH, PUSH_AUDIENCE }) => PUSH_AUTH !== 'oidc' || PUSH_AUDIENCE !== undefined,
    needsPushIdentity('PUSH_AUDIENCE'),
  )
  .refine(
    ({ PUSH_AUTH, PUSH_SERVICE_ACCOUNT }) => PUSH_AUTH !== 'oidc' || PUSH_SERVICE_ACCOUNT !== undefined,
    needsPushIdentity('PUSH_SERVICE_ACCOUNT'),
  );

export type Config = z.infer<typeof Environment>;
export const CONFIG_NAMES = Object.keys(variables) as readonly (keyof Config)[];

/** Whether operators have a door: it is there where somebody could come through it. */
export function hasOperators(config: Pick<Config, 'OPERATOR_TOKEN' | 'OPERATOR_PORT' | 'OIDC_ISSUER'>): boolean {
  return (config.OPERATOR_TOKEN ?? config.OPERATOR_PORT ?? config.OIDC_ISSUER) !== undefined;
}

/** Everything wrong with the environment, one line per variable. */
export class WrongEnvironment extends Error {
  override readonly name = 'WrongEnvironment';
}

/**
 * Reads the environment, once, at start. An empty variable counts as unset: compose files and charts write those.
 * @throws WrongEnvironment that names every wrong variable, its problem and an example, never its value
 */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return parse(Environment, env, CONFIG_NAMES);
}

/** Reads a part of the environment, for `expediter migrate` and the other commands. */
export function readConfigOf<Name extends keyof Config>(env: NodeJS.ProcessEnv, ...names: Name[]): Pick<Config, Name> {
  const part = z.object(Object.fromEntries(names.map((name) => [name, shape[name]]))).refine(...ONE_MAPPING);
  return parse(part as unknown as z.ZodType<Pick<Config, Name>>, env, names as string[]);
}

function parse<Shape>(schema: z.ZodType<Shape>, env: NodeJS.ProcessEnv, names: readonly string[]): Shape {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const problems = readSecretFiles(present, names);
  const result = schema.safeParse(present);
  if (result.success && problems.length === 0) return result.data;
  for (const issue of result.error?.issues ?? []) {
    const name = String(issue.path[0]) as keyof typeof variables;
    const problem = name in present || issue.code === 'custom' ? issue.message : 'is required';
    problems.push(`  ${name}: ${problem}. Example: ${variables[name][1]}`);
  }
  throw new WrongEnvironment(`The environment is not right:\n${[...new Set(problems)].join('\n')}`);
}

/**
 * Reads each secret that `NAME_FILE` names a file of, as Docker and Kubernetes mount secrets, into its variable.
 * @returns what is wrong with the files, one line each
 */
function readSecretFiles(env: NodeJS.ProcessEnv, names: readonly string[]): string[] {
  return SECRETS.filter((name) => names.includes(name)).flatMap((name) => {
    const file = env[`${name}_FILE`];
    if (file === undefined) return [];
    const wrong = (problem: string): string[] => [
      `  ${name}_FILE: ${problem}. Example: /run/secrets/${name.toLowerCase()}`,
    ];
    if (env[name] !== undefined) return wrong(`is set, and so is ${name}: set one of them`);
    try {
      env[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      return wrong(`names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
    return env[name] === '' ? wrong('names an empty file') : [];
  });
}

function integer(min: number, max: number): z.ZodCoercedNumber {
  return z.coerce
    .number({ error: `is not a whole number from ${min} to ${max}` })
    .int({ error: `is not a whole number from ${min} to ${max}` })
    .min(min, { error: `is less than ${min}` })
    .max(max, { error: `is more than ${max}` });
}

function share(): z.ZodCoercedNumber {
  const error = 'is not a number from 0 to 1';
  return z.coerce.number({ error }).min(0, { error }).max(1, { error });
}

function postgresUrl(): z.ZodURL {
  return z.url({ protocol: /^postgres(ql)?$/ });
}

/** A text that `parse` reads, or says in an error what is wrong with it. */
function parsedBy<Value>(parse: (text: string) => Value): z.ZodType<Value, string> {
  return z.string().transform((text, context) => {
    try {
      return parse(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message });
      return z.NEVER;
    }
  });
}

function httpUrl(): z.ZodURL {
  return z.url({ protocol: /^https?$/, error: 'is not an http or https URL' });
}

/** The same, without a slash behind it. */
function baseUrl(): z.ZodType<string, string> {
  return httpUrl().transform((url) => url.replace(/\/$/, ''));
}

function names(): z.ZodType<string[], string | undefined> {
  return z
    .string()
    .default('')
    .transform((text) => text.split(',').flatMap((name) => name.trim() || []));
}

/** Addresses and networks of the proxies in front, whose X-Forwarded-For is believed. */
function parseProxies(text: string): readonly string[] {
  const proxies = text.split(',').flatMap((entry) => entry.trim() || []);
  for (const [index, proxy] of proxies.entries()) {
    const [address = '', bits, ...more] = proxy.split('/');
    const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
    const isNetwork = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
    if (most < 0 || !isNetwork || more.length > 0) throw new Error(`entry ${index + 1} is no address, and no network`);
  }
  return proxies;
}

/** Origins as a browser sends them, among them those of apps, such as `capacitor://localhost`. */
function parseOrigins(text: string): readonly string[] {
  const origins = text.split(',').flatMap((entry) => entry.trim() || []);
  for (const [index, origin] of origins.entries()) {
    const { protocol, host } = URL.parse(origin) ?? {};
    if (!host || host.includes('*') || origin !== `${protocol}//${host}`) {
      throw new Error(
        `entry ${index + 1} is no origin: scheme and host in small letters, a port only where it is unusual, and no "/" behind`,
      );
    }
  }
  return origins;
}
