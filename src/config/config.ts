import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import { Email } from '../core/domain/email.ts';
import { hasCredentials } from '../core/domain/has-credentials.ts';
import { parseSecrets } from '../core/domain/standard-webhooks.ts';
import { isLoopback, isPlainElsewhere, parseAllowedHosts, refuseUrl } from '../core/egress/allowed-hosts.ts';
import { hasWeakKey, parseSettingsKeys } from '../core/locations/settings-key.ts';
import { parseKeySource } from '../identity/follow-keys.ts';

const isOneLine = (text: string): boolean => !/\p{Cc}/u.test(text);
const ONE_LINE = { error: 'has a line break or another control character in it: write it on one line' };

const WRITE = 'write postgres://user:password@host:5432/name?sslmode=verify-full';

type Variable = readonly [schema: z.ZodType, about: string, example?: string];
/**
 * The variables: each has a schema, a description for docs/configuration.md and .env.example (`npm run docs`), and an
 * example for error messages. Without an example, error messages show the default.
 */
export const VARIABLES = {
  DATABASE_URL: [
    postgresUrl(),
    'Postgres 15 or newer, or PgBouncer before it. Over a network add `sslmode=verify-full`',
    'postgres://expediter@db.internal:5432/expediter?sslmode=verify-full',
  ],
  OWNER_DATABASE_URL: [
    postgresUrl().optional(),
    'the role that owns the tables, for `expediter migrate` only',
    'postgres://expediter_owner@db.internal:5432/expediter?sslmode=verify-full',
  ],
  POOL_SIZE: [integer(5, 1000).default(10), 'maximum connections to Postgres per process'],

  HOST: [word().default('0.0.0.0'), 'the address to listen on'],
  PORT: [integer(0, 65_535).default(8080), 'the port for webhooks, pushes and members'],
  PUBLIC_URL: [
    baseUrl().optional(),
    'the base URL that POS systems call and some sign',
    'https://expediter.example.com',
  ],
  LOG_LEVEL: [
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
    '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
  ],
  DRAIN_DELAY_MS: [integer(0, 60_000).default(2000), 'milliseconds for which a stopping process serves, but not ready'],
  DRAIN_FINISH_MS: [integer(0, 60_000).default(6000), 'milliseconds in which it must finish its work after that'],

  ORDER_API_URL: [
    fetchedUrl(),
    "the ordering platform's GraphQL endpoint, or the base of its API for a module with `fetchOrder`",
    'https://orders.example.com/graphql',
  ],
  ORDER_API_TOKEN: [word().optional(), "the platform's bearer token", '<the bearer token of the ordering platform>'],
  ORDER_MODULE: [text().optional(), "a module that maps the platform's orders", '/etc/expediter/map-order.ts'],

  STATUS_WEBHOOK_URL: [
    fetchedUrl().optional(),
    'a URL of the platform that gets live messages, and the availability of kitchens: docs/connect-your-platform.md',
    'https://orders.example.com/expediter',
  ],
  STATUS_WEBHOOK_SECRET: [
    parsedBy(parseSecrets).optional(),
    'the secret that signs them, by Standard Webhooks. While you change it: the new and the old one, with a space between',
    'whsec_<32 random bytes in base64>',
  ],
  GOOGLE_CLOUD_PROJECT: [
    word().optional(),
    'the project with the topics. Unset: there is no topic and no spill',
    'my-project',
  ],
  STATUS_TOPIC: [word().default('order-status'), 'the topic for live messages, in `GOOGLE_CLOUD_PROJECT`'],
  KITCHEN_TOPIC: [
    word().optional(),
    'the topic for the availability of kitchens. Unset: it is not published there',
    'kitchen-availability',
  ],
  AVAILABILITY_TOKEN: [
    secret().optional(),
    "the platform's token for `GET /availability`. At least 43 characters. Without it there is no such endpoint",
    '<32 random bytes>, made with: openssl rand -base64 32',
  ],
  ATTENTION_TOPIC: [
    word().optional(),
    'the topic for what needs a person: docs/operators.md#be-called. Unset: it is not published',
    'expediter-attention',
  ],
  ATTENTION_WEBHOOK_URL: [
    fetchedUrl().optional(),
    'a URL that gets these events instead of the topic, signed with `NOTIFY_WEBHOOK_SECRET`',
    'https://pager.example.com/expediter',
  ],
  PUBSUB_EMULATOR_HOST: [word().optional(), 'an emulator in place of Pub/Sub', '127.0.0.1:8085'],
  SPILL_TOPIC: [
    word().optional(),
    'topic for webhooks while Postgres is away, read by its subscription `<topic>-drain`. Unset: they get 500',
    'webhook-spill',
  ],
  PUSH_AUTH: [z.enum(['oidc', 'off']).default('oidc'), '`oidc`, or `off` with a loopback `HOST`'],
  PUSH_AUDIENCE: [
    word().optional(),
    "audience of the pushes' OIDC token. Without a project and it there is no endpoint for pushes",
    'https://expediter.example.com/pubsub/push',
  ],
  PUSH_SERVICE_ACCOUNT: [z.email().optional(), 'account of that token', 'push@my-project.iam.gserviceaccount.com'],
  PUSH_JWKS_URL: [fetchedUrl().default('https://www.googleapis.com/oauth2/v3/certs'), "Google's keys for that token"],

  FOLLOW_TOKEN_KEYS: [
    parsedBy(parseKeySource).optional(),
    "the platform's public keys: the URL of a JWK Set, or the JWK Set itself. Without it there is no `GET /follow`",
    'https://orders.example.com/jwks.json',
  ],
  FOLLOW_TOKEN_AUDIENCE: [word().optional(), 'the required `aud` of a token', 'https://expediter.example.com/follow'],
  MEMBER_ORIGINS: [
    parsedBy(parseOrigins).prefault(''),
    'origins of pages and apps that may read `/follow`, exactly as browsers send them',
    'https://order.example.com,capacitor://localhost',
  ],
  FOLLOW_STREAMS_MAX: [integer(1, 1_000_000).default(10_000), 'maximum streams to members per process. More get 503'],

  SETTINGS_KEY: [
    parsedBy(parseSettingsKeys),
    'keys that encrypt settings, newest first: `id:base64,id:base64`. Make one with `openssl rand -base64 32`',
    '2026-01:<32 random bytes in base64>, made with: openssl rand -base64 32',
  ],
  PROVIDER_MODULES: [names(), 'modules with your own providers', '@my-club/expediter-provider-acme'],
  ALLOW_PRIVATE_HOSTS: [
    parsedBy(parseAllowedHosts).prefault(''),
    'POS systems and receivers without a public address or https: names, addresses and ranges',
    'pos.lan, 10.8.0.0/16',
  ],

  SMTP_URL: [
    z.url({ protocol: /^smtps?$/, error: 'is not an smtp or smtps URL' }).optional(),
    'the mail server for e-mail to restaurants: docs/notify-restaurants.md. A name and password are percent-encoded',
    'smtps://user:password@mail.example.com',
  ],
  MAIL_FROM: [Email.optional(), 'the sender of this e-mail', 'orders@example.com'],
  NOTIFY_WEBHOOK_URL: [
    fetchedUrl().optional(),
    'your gateway for SMS, calls or chat to restaurants',
    'https://sms.example.com/expediter',
  ],
  NOTIFY_WEBHOOK_SECRET: [
    parsedBy(parseSecrets).optional(),
    'the secret, or two, that signs messages to `NOTIFY_WEBHOOK_URL` and `ATTENTION_WEBHOOK_URL`, by Standard Webhooks',
    'whsec_<32 random bytes in base64>',
  ],

  OPERATOR_TOKEN: [
    secret().optional(),
    'gives every role everywhere. At least 43 characters. A new one ends the sessions that the old one opened',
    '<32 random bytes>, made with: openssl rand -base64 32',
  ],
  OPERATOR_PORT: [
    integer(0, 65_535).optional(),
    'the private port for operators. Set it to the value of `PORT` in a process that serves only operators',
    '8081',
  ],
  CONSOLE_URL: [baseUrl().optional(), "the console's base URL, required with OIDC", 'https://console.example.com'],
  OIDC_ISSUER: [fetchedUrl().optional(), 'the issuer for sign-in at the console', 'https://accounts.google.com'],
  OIDC_CLIENT_ID: [word().optional(), "the console's client id", '<the client id that the issuer gave the console>'],
  OIDC_CLIENT_SECRET: [text().optional(), "that client's secret, if it has one", '<the secret of that client>'],
  OIDC_SCOPES: [
    text()
      .regex(/(^| )openid( |$)/, { error: 'leaves out openid' })
      .default('openid email profile'),
    'the scopes to request',
  ],
  OIDC_GROUPS_CLAIM: [
    text().default('groups'),
    "the claim with a person's groups, or the way to it, such as `realm_access.roles`",
  ],
  OIDC_ALLOWED_DOMAINS: [names(), 'domains whose verified addresses may sign in', 'example.com'],
  OIDC_ALLOWED_GROUPS: [names(), 'groups that may sign in. Set these or domains', 'platform-team,club-managers'],
  TRUSTED_PROXIES: [
    parsedBy(parseProxies).prefault(''),
    'addresses and networks of the proxies in front of the service: docs/deploy.md#who-is-in-front',
    '35.191.0.0/16, 130.211.0.0/22',
  ],

  OTEL_EXPORTER_OTLP_ENDPOINT: [
    httpUrl().optional(),
    'an OpenTelemetry collector, by OTLP over HTTP. `/v1/traces` is added. Unset: no traces',
    'http://collector.internal:4318',
  ],
  OTEL_TRACES_SAMPLER_ARG: [share().default(1), 'the share of orders that is traced, 0 to 1', '0.1'],

  WEBHOOK_BODY_LIMIT: [integer(1024, 64 * 2 ** 20).default(2 ** 20), "maximum bytes of a webhook's body"],
  BODY_BUDGET: [
    integer(2 ** 20, 2 ** 32).default(64 * 2 ** 20),
    'bytes of all bodies in memory. One location, or one token for signals, gets a third of the free bytes. A spilled body counts nearly three times',
  ],

  PLACEMENT_DEADLINE_S: [integer(1, 604_800).default(1800), 'seconds until an order that cannot be placed fails'],

  REFUSED_KEEP: [integer(0, 48).default(24), 'hours for which webhooks with an old token are stored. 0: never'],
  WEBHOOK_RETENTION_DAYS: [integer(2, 3650).default(14), 'days for which webhooks are stored'],
  PII_RETENTION_DAYS: [integer(2, 3650).default(30), "days from an order's end until its member data is erased"],
  HISTORY_DAYS: [integer(30, 3650).default(400), "days from an order's end until its history is deleted"],
  ARCHIVE_URL: [
    z
      .string()
      .regex(/^(gs:\/\/[a-z0-9][\w.-]+(\/|$)|file:\/\/\/.)/, { error: 'is not gs://bucket/folder or file:///folder' })
      .optional(),
    'where this history is archived before. Unset: it is not archived',
    'gs://my-archive/expediter',
  ],
  AUDIT_RETENTION_DAYS: [integer(30, 3650).default(400), 'days for which the audit is stored'],
} as const satisfies Record<string, Variable>;

/** Variables that earlier versions had, and what replaces each. */
export const REMOVED: Readonly<Record<string, string>> = {
  LIVE_ORDER: 'live messages always have an ordering key',
  ORDER_QUERY_FILE: 'ORDER_MODULE names a module that exports the query',
  WEBHOOK_SHARE: 'one location may always send 100 webhooks per second',
  DROPPED_QUOTA: 'the quota is 64 MiB of unverified webhooks per location and day',
  ATTENTION_REMIND_MINUTES: 'a need that nobody takes is told again after 15 minutes',
};

/** The value of these variables may also be in a file. The variable `NAME_FILE` then has the path. */
export const SECRETS = [
  'DATABASE_URL',
  'OWNER_DATABASE_URL',
  'ORDER_API_TOKEN',
  'FOLLOW_TOKEN_KEYS',
  'SETTINGS_KEY',
  'SMTP_URL',
  // Many gateways have a token in the path or the query.
  'STATUS_WEBHOOK_URL',
  'NOTIFY_WEBHOOK_URL',
  'ATTENTION_WEBHOOK_URL',
  'STATUS_WEBHOOK_SECRET',
  'NOTIFY_WEBHOOK_SECRET',
  'OPERATOR_TOKEN',
  'AVAILABILITY_TOKEN',
  'OIDC_CLIENT_SECRET',
] as const satisfies (keyof typeof VARIABLES)[];

const shape = Object.fromEntries(Object.entries(VARIABLES).map(([name, [schema]]) => [name, schema])) as {
  [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name][0];
};

const Variables = z.object(shape);
export type Config = z.infer<typeof Variables>;
/** A variable, when it is wrong, and why. */
type Rule = [name: keyof Config, isWrong: (env: Config) => boolean, says: string];

const requiredWith = (name: keyof Config, others: readonly (keyof Config)[], because = ''): Rule => [
  name,
  (env) => env[name] === undefined && others.some((each) => env[each] !== undefined),
  `is required with ${others.join(' or ')}${because}`,
];

/** A webhook that may not be called is found at the start, and not at its first message. */
const callable = (name: 'STATUS_WEBHOOK_URL' | 'NOTIFY_WEBHOOK_URL' | 'ATTENTION_WEBHOOK_URL'): Rule => [
  name,
  ({ [name]: url, ALLOW_PRIVATE_HOSTS: allowed }) => {
    const parsed = typeof allowed === 'object' && url !== undefined ? URL.parse(url) : null;
    return parsed !== null && refuseUrl(parsed, allowed) !== undefined;
  },
  'may not be called: use https and a public address, or add its host to ALLOW_PRIVATE_HOSTS',
];

const RULES: readonly Rule[] = [
  callable('STATUS_WEBHOOK_URL'),
  callable('NOTIFY_WEBHOOK_URL'),
  callable('ATTENTION_WEBHOOK_URL'),
  [
    'BODY_BUDGET',
    (env) => env.BODY_BUDGET < 4 * env.WEBHOOK_BODY_LIMIT,
    'is less than four times WEBHOOK_BODY_LIMIT: one location gets at most a quarter, too little for the largest body',
  ],
  [
    'PII_RETENTION_DAYS',
    (env) => env.PII_RETENTION_DAYS < env.WEBHOOK_RETENTION_DAYS,
    'is less than WEBHOOK_RETENTION_DAYS: webhooks contain member data, and would be stored for longer',
  ],
  [
    'WEBHOOK_RETENTION_DAYS',
    (env) => env.SPILL_TOPIC !== undefined && env.WEBHOOK_RETENTION_DAYS < 8,
    'is less than 8 days, and SPILL_TOPIC is set: a webhook may wait in the spill for 7 days, and be deleted too soon',
  ],
  [
    'GOOGLE_CLOUD_PROJECT',
    (env) => env.GOOGLE_CLOUD_PROJECT === undefined && env.STATUS_WEBHOOK_URL === undefined,
    'is unset, and so is STATUS_WEBHOOK_URL: set one of them, by which live messages leave the service',
  ],
  requiredWith('GOOGLE_CLOUD_PROJECT', ['KITCHEN_TOPIC', 'ATTENTION_TOPIC', 'SPILL_TOPIC']),
  requiredWith('STATUS_WEBHOOK_SECRET', ['STATUS_WEBHOOK_URL']),
  [
    'PUBLIC_URL',
    (env) => env.PUBLIC_URL === undefined && env.GOOGLE_CLOUD_PROJECT === undefined,
    'is required without GOOGLE_CLOUD_PROJECT: it names the source of live messages',
  ],
  requiredWith('FOLLOW_TOKEN_AUDIENCE', ['FOLLOW_TOKEN_KEYS']),
  requiredWith('MAIL_FROM', ['SMTP_URL']),
  requiredWith('NOTIFY_WEBHOOK_SECRET', ['NOTIFY_WEBHOOK_URL', 'ATTENTION_WEBHOOK_URL']),
  [
    'ATTENTION_WEBHOOK_URL',
    (env) => env.ATTENTION_TOPIC !== undefined && env.ATTENTION_WEBHOOK_URL !== undefined,
    'is set, and so is ATTENTION_TOPIC: set only one of them',
  ],
  requiredWith('PUBLIC_URL', ['SMTP_URL', 'NOTIFY_WEBHOOK_URL'], ': restaurants answer there'),
  [
    'OPERATOR_PORT',
    (env) =>
      env.OPERATOR_PORT === undefined && (env.OPERATOR_TOKEN ?? env.OIDC_ISSUER) !== undefined && !isLoopback(env.HOST),
    'is unset, and HOST is not a loopback address: set a port that is not public, or the value of PORT if this process serves only operators',
  ],
  [
    'OIDC_CLIENT_ID',
    (env) => (env.OIDC_ISSUER === undefined) !== (env.OIDC_CLIENT_ID === undefined),
    'and OIDC_ISSUER must both be set, or neither',
  ],
  [
    'OIDC_ISSUER',
    ({ OIDC_ISSUER = '' }) => isPlainElsewhere(OIDC_ISSUER),
    'is not https: an attacker on the network could sign in as anybody',
  ],
  requiredWith('CONSOLE_URL', ['OIDC_ISSUER'], ': the issuer redirects people to the console after sign-in'),
  [
    'OIDC_ALLOWED_DOMAINS',
    ({ OIDC_ISSUER, OIDC_ALLOWED_DOMAINS, OIDC_ALLOWED_GROUPS }) =>
      OIDC_ISSUER !== undefined && ![OIDC_ALLOWED_DOMAINS, OIDC_ALLOWED_GROUPS].some((each) => each?.length > 0),
    'and OIDC_ALLOWED_GROUPS are unset, and OIDC_ISSUER is set: set one of them to define who may sign in',
  ],
  [
    'SETTINGS_KEY',
    ({ SETTINGS_KEY, HOST }) => !isLoopback(HOST) && SETTINGS_KEY instanceof Map && hasWeakKey(SETTINGS_KEY),
    'has a key that can be guessed, allowed only for a loopback HOST. Make a new one: openssl rand -base64 32; then rekey',
  ],
  [
    'PUSH_AUTH',
    (env) => env.PUSH_AUTH === 'off' && !isLoopback(env.HOST),
    '"off" is for a loopback HOST only: anybody could push',
  ],
  ...(['PUSH_AUDIENCE', 'PUSH_SERVICE_ACCOUNT'] as const).map((name): Rule => [
    name,
    (env) => env.PUSH_AUTH === 'oidc' && isPushed(env) && env[name] === undefined,
    'is required for pushes while PUSH_AUTH is "oidc"',
  ]),
];

/** Whether Pub/Sub may push signals. Without a project and an audience there is no endpoint for pushes. */
export function isPushed(
  config: {
    [name in 'GOOGLE_CLOUD_PROJECT' | 'PUSH_AUDIENCE' | 'PUSH_SERVICE_ACCOUNT']?: string | undefined;
  } & { PUSH_AUTH: 'oidc' | 'off' },
): boolean {
  const { GOOGLE_CLOUD_PROJECT, PUSH_AUDIENCE, PUSH_SERVICE_ACCOUNT, PUSH_AUTH } = config;
  return PUSH_AUTH === 'off' || (GOOGLE_CLOUD_PROJECT ?? PUSH_AUDIENCE ?? PUSH_SERVICE_ACCOUNT) !== undefined;
}

/** Because of `when`, each rule is checked even if other variables are wrong. */
const Environment = RULES.reduce(
  (schema, [name, isWrong, error]) => schema.refine((env) => !isWrong(env), { path: [name], error, when: () => true }),
  Variables,
);

export const CONFIG_NAMES = Object.keys(VARIABLES) as readonly (keyof Config)[];

/** Whether the process serves operators. It does so only if somebody could sign in or a port is set for them. */
export function hasOperators(config: Pick<Config, 'OPERATOR_TOKEN' | 'OPERATOR_PORT' | 'OIDC_ISSUER'>): boolean {
  return (config.OPERATOR_TOKEN ?? config.OPERATOR_PORT ?? config.OIDC_ISSUER) !== undefined;
}

/** Some variables are wrong. The message has one line for each wrong variable. */
export class WrongEnvironment extends Error {
  override readonly name = 'WrongEnvironment';
}

/**
 * Reads the environment. An empty variable counts as unset, because compose files and charts write empty variables. White
 * space around a value is removed: a file, a pipe or a chart often adds a line break.
 * @throws WrongEnvironment that names every wrong variable, its problem and an example, never its value
 */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return parse(Environment, env, CONFIG_NAMES);
}

/** Reads a part of the environment, for `expediter migrate` and the other commands. */
export function readConfigOf<Name extends keyof Config>(env: NodeJS.ProcessEnv, ...names: Name[]): Pick<Config, Name> {
  const part = z.object(Object.fromEntries(names.map((name) => [name, shape[name]])));
  return parse(part as unknown as z.ZodType<Pick<Config, Name>>, env, names as string[]);
}

/** @returns a function that reads the platform's token again, because its file may be rotated; undefined without a file */
export function tokenReader(env: NodeJS.ProcessEnv): (() => string | undefined) | undefined {
  return env['ORDER_API_TOKEN_FILE']?.trim() ? () => readConfigOf(env, 'ORDER_API_TOKEN').ORDER_API_TOKEN : undefined;
}

function parse<Shape>(schema: z.ZodType<Shape>, env: NodeJS.ProcessEnv, names: readonly string[]): Shape {
  const trimmed = Object.entries(env).map(([name, value]) => [name, value?.trim()] as const);
  const present = Object.fromEntries(trimmed.filter(([, value]) => value !== undefined && value !== ''));
  const problems = [...removedIn(present), ...readSecretFiles(present, names), ...quotedIn(present, names)];
  const result = schema.safeParse(present);
  if (result.success && problems.length === 0) return result.data;
  for (const issue of result.error?.issues ?? []) {
    const name = String(issue.path[0]) as keyof typeof VARIABLES;
    const problem = Object.hasOwn(present, name) || issue.code === 'custom' ? issue.message : 'is required';
    problems.push(`  ${name}: ${problem}. Example: ${exampleOf(VARIABLES[name])}`);
  }
  throw new WrongEnvironment(
    `The environment is wrong. Correct these variables:\n${[...new Set(problems)].join('\n')}`,
  );
}

/** @returns a line for each removed variable that is set. Ignoring it could change what the service does unnoticed. */
function removedIn(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(REMOVED).flatMap(([name, instead]) =>
    env[name] === undefined ? [] : [`  ${name}: was removed: ${instead}. Remove it`],
  );
}

/** @returns a line for each value in quotation marks. Some tools that read files of variables keep them. */
function quotedIn(env: NodeJS.ProcessEnv, names: readonly string[]): string[] {
  return names
    .filter((name) => /^(["']).*\1$/s.test(env[name] ?? ''))
    .map((name) => `  ${name}: is in quotation marks: remove them`);
}

/**
 * Reads secrets from the files named by `NAME_FILE` variables into `env`. Docker and Kubernetes mount secrets as files.
 * @returns the problems with the files, one line each
 */
function readSecretFiles(env: NodeJS.ProcessEnv, names: readonly string[]): string[] {
  return SECRETS.filter((name) => names.includes(name)).flatMap((name) => {
    const file = env[`${name}_FILE`];
    if (file === undefined) return [];
    const wrong = (problem: string): string[] => [
      `  ${name}_FILE: ${problem}. Example: /run/secrets/${name.toLowerCase()}`,
    ];
    if (env[name] !== undefined) return wrong(`is set, and so is ${name}: set only one of them`);
    try {
      env[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      return wrong(`names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
    return env[name] === '' ? wrong('names an empty file') : [];
  });
}

function exampleOf([schema, , example = String(schema.safeParse(undefined).data)]: Variable): string {
  return example;
}

function text(): z.ZodString {
  return z.string().refine(isOneLine, ONE_LINE);
}

/** A name or token, which has no white space in it. */
function word(): z.ZodString {
  return text().regex(/^\P{White_Space}*$/u, { error: 'has white space in it: write it without' });
}

/** A token that a header can carry. */
function secret(): z.ZodString {
  return z
    .string()
    .min(43, { error: 'has fewer than 43 characters, which 32 random bytes have in base64' })
    .regex(/^[\x21-\x7e]+$/, { error: 'has a space or another character that a header cannot carry' });
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

/** A URL that `pg` and `URL` read in the same way. The errors name what libpq would take. */
function postgresUrl(): z.ZodString {
  const why = (url: string): string | undefined => {
    const [, authority = ''] = /^postgres(?:ql)?:\/\/([^/?]*)/.exec(url) ?? [];
    if (/^\w+ *=/.test(url)) return `is in the form of keywords and values: ${WRITE}`;
    if (!/^postgres(ql)?:\/\//.test(url)) return `is not a postgres URL: ${WRITE}`;
    if (url.includes('#')) return 'has a # in it: write %23 for it in the password';
    if (authority.slice(authority.lastIndexOf('@') + 1).includes(',')) {
      return 'names several hosts: write one, which leads to the primary, such as that of a proxy';
    }
    if (authority.endsWith('@'))
      return 'has no host: for a socket write postgres://user@localhost/name?host=/run/postgresql';
    return URL.canParse(url) ? undefined : `is not a URL: percent-encode the password, with %40 for @ and %2F for /`;
  };
  return text().superRefine((url, context) => {
    const message = why(url);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
}

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

/** A URL to which we send requests by fetch, which refuses a URL with a user or a password. */
function fetchedUrl(): z.ZodURL {
  // guard: url-without-user
  return httpUrl().refine((url) => !hasCredentials(url), {
    error: 'has a user or a password, which cannot be sent. Use a token in its path',
  });
}

/** An http or https URL. A slash at its end is removed. */
function baseUrl(): z.ZodType<string, string> {
  return httpUrl().transform((url) => url.replace(/\/$/, ''));
}

function partsOf(text: string): string[] {
  return text.split(',').flatMap((part) => part.trim() || []);
}

function names(): z.ZodType<string[], string | undefined> {
  return z.string().default('').transform(partsOf);
}

/** Parses addresses and networks of proxies whose X-Forwarded-For is trusted. */
function parseProxies(text: string): readonly string[] {
  const proxies = partsOf(text);
  for (const [index, proxy] of proxies.entries()) {
    const [address = '', bits, ...more] = proxy.split('/');
    const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
    const isNetwork = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
    if (most < 0 || !isNetwork || more.length > 0) throw new Error(`entry ${index + 1} is not an address or a network`);
    if (Number(bits) === 0) throw new Error(`entry ${index + 1} is every address: name only your own proxies`);
  }
  return proxies;
}

/** Parses origins. They must be written as browsers and apps send them, such as `capacitor://localhost`. */
function parseOrigins(text: string): readonly string[] {
  const origins = partsOf(text);
  for (const [index, origin] of origins.entries()) {
    const { protocol, host } = URL.parse(origin) ?? {};
    if (!host || host.includes('*') || origin !== `${protocol}//${host}`) {
      throw new Error(
        `entry ${index + 1} is not an origin: write scheme and host in small letters, a port only if it is not the default, and no "/" at the end`,
      );
    }
  }
  return origins;
}
