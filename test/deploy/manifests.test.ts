/**
 * What is under `deploy/`, held to the code: a manifest names no variable, path or time that the service does not have.
 * `npm run test:system` asks shellcheck as well, and renders the chart, of which `chart-values.test.ts` reads the sources.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import { CONFIG_NAMES, readConfig, readConfigOf } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { migrate } from '../../src/database/migrate.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { runCli } from '../support/run-cli.ts';
import {
  connectionsOfSetUp,
  DEPLOYED_SECRETS,
  environmentOf,
  expectMemory,
  expectProbes,
  stopsWithinS,
  type Manifest,
  type PodSpec,
} from '../support/read-manifests.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { startPostgres } from '../../world/postgres/start-postgres.ts';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';
import { read, ROOT } from '../support/read-project.ts';

const PLACES: Record<string, string> = {
  PROJECT: 'my-project',
  REGION: 'europe-west1',
  PUBLIC_URL: 'https://expediter.example.com',
  ORDER_API_URL: 'https://orders.example.com/graphql',
  IMAGE: 'europe-west1-docker.pkg.dev/my-project/expediter/expediter:1.0.0',
};
function readFilled(path: string): string {
  return read(`deploy/${path}`).replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => {
    expect(PLACES, `${path} asks for ${whole}`).toHaveProperty(name);
    return PLACES[name] ?? '';
  });
}

function manifests(path: string): Manifest[] {
  return parseAllDocuments(readFilled(path)).map((document) => {
    expect(document.errors, path).toEqual([]);
    return document.toJS() as Manifest;
  });
}

function specOf(path: string): unknown {
  const [found] = manifests(path);
  if (found === undefined) throw new Error(`${path} has no document`);
  return found.spec;
}

type Template = { template: { metadata: { annotations: Record<string, string> }; spec: PodSpec } };
const cloudRun = specOf('cloud-run/service.yaml') as Template;
const cloudRunOperators = specOf('cloud-run/operator-service.yaml') as Template;
const cloudRunJob = specOf('cloud-run/migrate-job.yaml') as { template: { spec: Template } };

const services: [string, PodSpec, Record<string, string>][] = [
  ['Cloud Run', cloudRun.template.spec, environmentOf(cloudRun.template.spec.containers[0])],
  [
    'Cloud Run, for operators',
    cloudRunOperators.template.spec,
    environmentOf(cloudRunOperators.template.spec.containers[0]),
  ],
];

describe.each(services)('the service on %s', (_where, { containers: [container] }, environment) => {
  it('has every required variable, and no unknown one', () => {
    expect(Object.keys(environment).filter((name) => !(CONFIG_NAMES as readonly string[]).includes(name))).toEqual([]);
    expect(() => readConfig(environment)).not.toThrow();
    // Optional for the service, and needed by the people who run it.
    expect(environment).toMatchObject({ PUBLIC_URL: expect.any(String), OPERATOR_TOKEN: expect.any(String) });
    expect(environment['PUSH_AUDIENCE']).toBe(`${environment['PUBLIC_URL']}/pubsub/push`);
    for (const { name, value } of container.env ?? []) if (name in DEPLOYED_SECRETS) expect(value).toBeUndefined();
    expect(environment, 'the owner of the tables is for the migration').not.toHaveProperty('OWNER_DATABASE_URL');
  });

  it('has probes at routes that exist', () => expectProbes(container));

  it('has one and a half times the memory that V8 may use', () => expectMemory(container));
});

describe('the public service on Cloud Run', () => {
  it('leads only to the port of webhooks, because operators have a service of their own', () => {
    const [outside, operators] = ['service', 'operator-service'].map(
      (file) => manifests(`cloud-run/${file}.yaml`)[0]?.metadata ?? { name: '' },
    );
    const anybody = { 'run.googleapis.com/invoker-iam-disabled': 'true' };
    expect(outside).toMatchObject({ name: 'expediter', annotations: anybody });
    expect(operators?.name).toBe('expediter-operator');
    expect(operators?.annotations).not.toHaveProperty(Object.keys(anybody));
    // Cloud Run makes PORT of it.
    const { ports } = cloudRun.template.spec.containers[0];
    const config = readConfig({ ...services[0]?.[2], PORT: String(ports?.[0]?.containerPort) });
    expect(ports).toHaveLength(1);
    expect(config.OPERATOR_PORT).toBeGreaterThan(0);
    // The same but for that, and with fewer connections.
    const { OPERATOR_PORT } = config;
    // The one port of the other is that of operators too.
    const port = String(cloudRunOperators.template.spec.containers[0].ports?.[0]?.containerPort);
    expect(services[1]?.[2]).toEqual({ ...services[0]?.[2], POOL_SIZE: '5', OPERATOR_PORT: port });
    const collector = readFilled('monitoring/cloud-run-collector.yaml');
    expect(collector).toContain(`targets: ['127.0.0.1:${OPERATOR_PORT}']`);
    const image = (template: Template): string => template.template.spec.containers[0].image;
    expect(image(cloudRunOperators)).toBe(image(cloudRun));
  });
});

describe('a stream to a member', () => {
  const numberIn = (file: string, name: string): number =>
    Number(new RegExp(`${name} = ([\\d_]+)`).exec(read(file))?.[1]?.replaceAll('_', ''));

  it('ends before Cloud Run would cut it', () => {
    const { timeoutSeconds } = cloudRun.template.spec as { timeoutSeconds?: number };
    const minutes = numberIn('src/http/follow/member-streams.ts', 'MAX_AGE_MS');
    expect(minutes).toBe(30);
    expect(timeoutSeconds).toBeGreaterThan(1.1 * minutes * 60);
  });
});

describe('the service on Cloud Run', () => {
  const { annotations } = cloudRun.template.metadata;

  it('has CPU between requests, and always one process', () => {
    expect(annotations['run.googleapis.com/cpu-throttling']).toBe('false');
    expect(Number(annotations['autoscaling.knative.dev/minScale'])).toBeGreaterThanOrEqual(1);
  });

  it('stops within the ten seconds that Cloud Run gives it', () => {
    expect(stopsWithinS(readConfig(services[0]?.[2] ?? {}))).toBeLessThan(10);
  });

  it('uses fewer connections than the Postgres of set-up.sh has, even with two revisions of each service', () => {
    const perService = [cloudRun, cloudRunOperators].map(({ template }, nth) => {
      const most = Number(template.metadata.annotations['autoscaling.knative.dev/maxScale']);
      return most * readConfig(services[nth]?.[2] ?? {}).POOL_SIZE;
    });
    expect(2 * perService.reduce((all, each) => all + each, 0)).toBeLessThan(connectionsOfSetUp());
  });

  it("has a startup probe that ends within Cloud Run's limit of 240 s", () => {
    const probe = cloudRun.template.spec.containers[0].startupProbe;
    expect((probe?.periodSeconds ?? 0) * (probe?.failureThreshold ?? 0)).toBeLessThanOrEqual(240);
  });
});

describe('the migration on Cloud Run', () => {
  const [container] = cloudRunJob.template.spec.template.spec.containers;

  it('is `expediter migrate` with only the database variables of both roles', () => {
    expect(container.command).toEqual(['expediter', 'migrate']);
    const environment = environmentOf(container);
    expect(Object.keys(environment)).toEqual(['DATABASE_URL', 'OWNER_DATABASE_URL']);
    expect(() => readConfigOf(environment, 'DATABASE_URL', 'OWNER_DATABASE_URL')).not.toThrow();
  });

  it("has the secret of the tables' owner, which the service does not have", () => {
    const secretOf = (name: string): string =>
      container.env?.find((each) => each.name === name)?.valueFrom?.secretKeyRef.name ?? '';
    const [own, shared] = [secretOf('OWNER_DATABASE_URL'), secretOf('DATABASE_URL')];
    expect(own).not.toBe('');
    expect(own).not.toBe(shared);
    for (const [, { containers }] of services) {
      expect(containers[0].env?.map(({ valueFrom }) => valueFrom?.secretKeyRef.name)).not.toContain(own);
    }
  });
});

describe('docs/deploy.md', () => {
  const document = read('docs/deploy.md');

  it('has valid shell in every block', () => {
    const blocks = [...document.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);
    expect(blocks.length).toBeGreaterThan(15);
    for (const block of blocks) {
      const { status, stderr } = spawnSync('bash', ['-n'], { input: block, encoding: 'utf8' });
      expect({ block, status, stderr }).toEqual({ block, status: 0, stderr: '' });
    }
  });

  it('names only files that exist', () => {
    const paths = [...document.matchAll(/(?<![\w./-])deploy\/[\w./-]+\w/g)].map(([path]) => path);
    for (const path of paths.filter((each) => each !== 'deploy/expediter')) {
      expect(existsSync(join(ROOT, path)), path).toBe(true);
    }
  });

  it("shows URLs that verify Postgres's certificate wherever the connection crosses a network", () => {
    const files = [
      'docs/deploy.md',
      'docs/your-first-order.md',
      '.env.example',
      'deploy/google-cloud/set-up.sh',
      'src/config/config.ts',
    ];
    const urls = files.flatMap((file) => [...read(file).matchAll(/postgres:\/\/[^\s'"`]*@[^\s'"`]+/g)]);
    expect(urls.length).toBeGreaterThan(8);
    for (const [url] of urls) expect(url).toMatch(/[?&](sslmode=verify-full|host=\/)|@127\.0\.0\.1/);
  });

  it('has the names of secrets, accounts and topics that the script creates', () => {
    const script = read('deploy/google-cloud/set-up.sh');
    const topics = services.flatMap(([, , environment]) =>
      Object.entries(environment).flatMap(([name, topic]) => (name.endsWith('_TOPIC') ? topic : [])),
    );
    const others = ['expediter-orders', 'expediter-dead-letter', 'expediter-settings-key', 'webhook-spill-drain'];
    for (const name of [...others, ...new Set(topics)]) {
      expect(document).toContain(name);
      expect(script).toContain(name);
    }
    const containers = [cloudRun.template.spec.containers[0], cloudRunJob.template.spec.template.spec.containers[0]];
    const secrets = containers.flatMap(({ env }) => env?.flatMap(({ valueFrom }) => valueFrom ?? []) ?? []);
    for (const { secretKeyRef } of secrets) expect(script).toContain(secretKeyRef.name);
  });
});

it('a database URL like that of set-up.sh reaches Postgres through a socket', async () => {
  const folder = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'socket-'));
  chmodSync(folder, 0o777);
  const postgres = await startPostgres({ settings: { unix_socket_directories: folder, listen_addresses: '' } });
  try {
    // The port is the socket's name; Cloud SQL's is always 5432.
    const url = `postgres://postgres:word@localhost/postgres?host=${folder}&port=${postgres.port}`;
    const { DATABASE_URL } = readConfigOf({ DATABASE_URL: url }, 'DATABASE_URL');
    const { pool, flushPool } = openDatabase(DATABASE_URL, 5, () => {});
    const { rows } = await pool.query('SELECT inet_server_addr() IS NULL AS by_socket');
    expect(rows).toEqual([{ by_socket: true }]);
    await Promise.all([pool.end(), flushPool.end()]);
    expect(await migrate(DATABASE_URL)).toContain('0001-baseline');
  } finally {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

it('commands that only read work on a standby', async () => {
  const url = new URL(await createDatabase());
  url.searchParams.set('options', '-c default_transaction_read_only=on');
  const run = (...args: string[]): Promise<Ended> => runCli({ DATABASE_URL: url.href }, args);
  for (const args of [
    ['order', 'list'],
    ['webhook', 'list'],
    ['location', 'list'],
    ['token', 'list'],
  ]) {
    expect(await run(...args), args.join(' ')).toMatchObject({ code: 0, error: '' });
  }
  expect(await run('order', 'show', 'none')).toMatchObject({ code: 3 });
  expect(await run('operator', 'grant', 'add', '--group', 'team', '--role', 'viewer')).toMatchObject({
    code: 1,
    error: expect.stringContaining('read-only'),
  });
});
