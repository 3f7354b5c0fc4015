/**
 * `npm run certify`: lets a vendor's engineer test their bridge on one machine. Starts Postgres, a stand-in for Pub/Sub
 * and the service, sets up one restaurant, and runs `expediter certify` for it.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { webhookUrl } from '../../src/core/domain/paths.ts';
import { parseAllowedHosts } from '../../src/core/egress/allowed-hosts.ts';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { registry } from '../../src/providers/index.ts';
import { endings } from './endings.ts';
import { keepSecret } from './keep-secret.ts';
import { openPubsub } from './open-pubsub.ts';
import { prepareDemoDatabase } from './prepare-demo-database.ts';
import { runService } from './run-service.ts';

const LOCATION = 'my-restaurant';
const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const DEFAULT_DIR = fileURLToPath(new URL('../../.certify', import.meta.url));
/** The service needs an address of a platform. It is never called, because a test order comes from no platform. */
const NO_PLATFORM = 'http://127.0.0.1:9/graphql';
/** The default time to wait for each status. It is short, because the engineer presses buttons of a till at hand. */
const WAIT = '60s';
const LOOK_MS = 500;
const TOKEN = 'token';

const USAGE = `Usage: npm run certify -- --orders-url <url> [<options>]

Tests your bridge to a POS: starts the service on this machine, sends your bridge a test order, and prints which checks
it passes and which it fails. Waits until your bridge listens at <url>. See docs/connect-your-pos.md.

Options:
  --orders-url <url>    the URL at which your bridge accepts orders, such as http://127.0.0.1:3000/orders
  --delivery            send a delivery order instead of a pickup order
  --without <what>      what your POS does not support, separated by commas: the statuses received, in_progress, ready,
                        en_route, completed; or repeats, if it does not repeat webhooks that are not answered 200
  --wait <time>         the longest wait for each status, such as 60s or 5m (default: ${WAIT})
  --json                print the result as JSON on standard output
  --port <port>         the port to which your bridge sends statuses (default: 8787)
  --dir <dir>           store the data, the secret and the token there (default: .certify in this repository)
  -h, --help            print this
`;

process.exitCode = await main();

async function main(): Promise<number> {
  let given: ReturnType<typeof read>;
  try {
    given = read();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  if (given === 'help') {
    process.stdout.write(USAGE);
    return 0;
  }
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => stopping.abort(new Error(`stopped by ${name}`)));
  }
  const ends = endings();
  try {
    return await certify(given, ends, stopping.signal);
  } catch (error) {
    process.stderr.write(`\n${(error as Error).message}\n`);
    return 1;
  } finally {
    await ends.run();
  }
}

/** @throws Error that says what is wrong with the arguments */
function read() {
  const { values } = parseArgs({
    options: {
      'orders-url': { type: 'string' },
      delivery: { type: 'boolean' },
      without: { type: 'string' },
      wait: { type: 'string', default: WAIT },
      json: { type: 'boolean' },
      port: { type: 'string', default: '8787' },
      dir: { type: 'string', default: DEFAULT_DIR },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return 'help' as const;
  const { 'orders-url': ordersUrl = '', port, dir, delivery, without, wait, json } = values;
  if (ordersUrl === '') throw new Error('--orders-url is needed: the URL at which your bridge accepts orders');
  if (!/^https?:\/\//i.test(ordersUrl) || !URL.canParse(ordersUrl)) {
    throw new Error('--orders-url has to begin with http:// or https://, such as http://127.0.0.1:3000/orders');
  }
  if (!/^\d{1,5}$/.test(port)) throw new Error('--port is not a port');
  const forCli = [
    ...(delivery === true ? ['--delivery'] : []),
    ...(without === undefined ? [] : ['--without', without]),
    '--wait',
    wait,
    ...(json === true ? ['--json'] : []),
  ];
  return { ordersUrl: new URL(ordersUrl), port, dir: resolve(dir), forCli };
}

async function certify(
  { ordersUrl, port, dir, forCli }: Exclude<ReturnType<typeof read>, 'help'>,
  ends: ReturnType<typeof endings>,
  signal: AbortSignal,
): Promise<number> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  mkdirSync(dir, { recursive: true });
  const logFile = join(dir, 'service.log');
  writeFileSync(logFile, '');
  const database = await prepareDemoDatabase({ dir, databaseUrl: undefined, name: 'npm run certify' });
  ends.add('Postgres', () => database.stop());
  const pubsub = await openPubsub({ emulatorHost: undefined, project: 'expediter-certify', run: 'certify' });
  ends.add('Pub/Sub', () => pubsub.stop());

  const publicUrl = `http://127.0.0.1:${port}`;
  const env = {
    ...pubsub.env,
    DATABASE_URL: database.url,
    ORDER_API_URL: NO_PLATFORM,
    SETTINGS_KEY: keepSecret(dir, 'settings-key', () => `certify:${randomBytes(32).toString('base64')}`),
    OPERATOR_TOKEN: keepSecret(dir, 'operators-token', () => randomBytes(32).toString('base64url')),
    ALLOW_PRIVATE_HOSTS: ordersUrl.hostname,
    PUBLIC_URL: publicUrl,
    PORT: port,
    // `certify` makes the service answer one webhook with 500, and expects a repeat. With a spill, the answer is 200.
    SPILL_TOPIC: '',
  };
  const secret = keepSecret(dir, 'secret', () => `whsec_${randomBytes(32).toString('base64')}`);
  const token = await openRestaurant(env, ordersUrl, secret, dir);
  const service = await runService({ env, logFile, signal });
  ends.add('the service', () => service.stop());

  const where = webhookUrl(publicUrl, { integration: 'standard', locationId: LOCATION, token });
  process.stderr.write(`
Configure your bridge with these values. They are the same in every run:

  webhook URL   ${where}
  secret        ${secret}

Orders go to    ${ordersUrl.href}
`);
  await listens(ordersUrl, signal);
  process.stderr.write('\n');
  const child = spawn(process.execPath, [CLI, 'certify', '--location', LOCATION, ...forCli], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  // A Ctrl-C reaches the child as well. The child then ends the test order before it exits, so we wait for it.
  signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

/** Sets up the restaurant. The first run issues a token, which later runs use again. @returns the token */
async function openRestaurant(
  env: { DATABASE_URL: string; SETTINGS_KEY: string; ALLOW_PRIVATE_HOSTS: string; PUBLIC_URL: string },
  ordersUrl: URL,
  secret: string,
  dir: string,
): Promise<string> {
  const pool = new pg.Pool({ connectionString: env.DATABASE_URL, max: 1 });
  try {
    await putLocation(
      pool,
      {
        registry,
        keys: parseSettingsKeys(env.SETTINGS_KEY),
        publicUrl: env.PUBLIC_URL,
        allowedHosts: parseAllowedHosts(env.ALLOW_PRIVATE_HOSTS),
      },
      { locationId: LOCATION, integration: 'standard', settings: { ordersUrl: ordersUrl.href, secret } },
    );
    const { token } = existsSync(join(dir, TOKEN))
      ? { token: '' }
      : await issueToken(pool, { locationId: LOCATION, label: 'bridge' });
    return keepSecret(dir, TOKEN, () => token);
  } finally {
    await pool.end();
  }
}

/** Resolves when the bridge accepts connections. */
async function listens(url: URL, signal: AbortSignal): Promise<void> {
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  for (let tries = 0; ; tries += 1) {
    signal.throwIfAborted();
    const socket = connect(port, url.hostname);
    const isThere = await Promise.race([
      once(socket, 'connect').then(
        () => true,
        () => false,
      ),
      sleep(LOOK_MS, false),
    ]);
    socket.destroy();
    if (isThere) return;
    if (tries === 0) process.stderr.write(`\nYour bridge does not listen there yet. Start it. Waiting …\n`);
    await sleep(LOOK_MS);
  }
}
