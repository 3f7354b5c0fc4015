/**
 * What is under `deploy/`, held to the code: a manifest names no variable, path or time that the service does not have.
 * `npm run test:system` asks shellcheck as well.
 */
import { randomBytes } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import { CONFIG_NAMES, readConfig, readConfigOf } from '../../src/server/config.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { migrate } from '../../src/database/migrate.ts';
import { createDatabase } from '../support/create-database.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../support/run-program.ts';
import { startPostgres } from '../support/start-postgres.ts';
import { sharedTmpdir, unprivilegedUser } from '../support/unprivileged-user.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const SETTINGS_KEY = `2026-11:${randomBytes(32).toString('base64')}`;
/** In place of what only a deployment knows. */
const SECRETS: Record<string, string> = {
  DATABASE_URL: 'postgres://expediter:word@localhost/expediter?host=/cloudsql/my-project:europe-west1:expediter',
  OWNER_DATABASE_URL:
    'postgres://expediter_owner:word@localhost/expediter?host=/cloudsql/my-project:europe-west1:expediter',
  SETTINGS_KEY,
  OPERATOR_TOKEN: 'x'.repeat(64),
  OIDC_CLIENT_SECRET: 'word',
  ORDER_API_TOKEN: 'word',
};
const PLACES: Record<string, string> = {
  PROJECT: 'my-project',
  REGION: 'europe-west1',
  PUBLIC_URL: 'https://expediter.example.com',
  ORDER_API_URL: 'https://orders.example.com/graphql',
  IMAGE: 'europe-west1-docker.pkg.dev/my-project/expediter/expediter:1.0.0',
};
/** For the last lines of its log. */
const AIR_S = 1;
/** How long a call to a POS may take. */
const POS_CALL_S = 15;
const stopsWithinS = ({ DRAIN_DELAY_MS, DRAIN_FINISH_MS }: ReturnType<typeof readConfig>): number =>
  (DRAIN_DELAY_MS + DRAIN_FINISH_MS) / 1_000 + AIR_S;

type Probe = { httpGet: { path: string; port: string | number }; periodSeconds: number; failureThreshold: number };
type Container = {
  image: string;
  command?: string[];
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  envFrom?: { configMapRef: { name: string } }[];
  ports?: { name?: string; containerPort: number }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  resources: { limits: { memory: string } };
  securityContext?: Record<string, unknown>;
};
type PodSpec = {
  containers: [Container];
  terminationGracePeriodSeconds?: number;
  securityContext?: Record<string, unknown>;
};
type Manifest = {
  kind: string;
  metadata: { name: string; annotations?: Record<string, string> };
  /** As its kind has it. */
  spec: unknown;
};

function read(path: string): string {
  return readFileSync(join(PROJECT, 'deploy', path), 'utf8').replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => {
    expect(PLACES, `${path} asks for ${whole}`).toHaveProperty(name);
    return PLACES[name] ?? '';
  });
}

function manifests(path: string): Manifest[] {
  return parseAllDocuments(read(path)).map((document) => {
    expect(document.errors, path).toEqual([]);
    return document.toJS() as Manifest;
  });
}

function readKustomization(folder: string): { resources: string[]; images?: unknown } {
  return parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as { resources: string[]; images?: unknown };
}

function specOf(path: string, kind?: string): unknown {
  const found = manifests(path).find((each) => kind === undefined || each.kind === kind);
  if (found === undefined) throw new Error(`${path} has no ${kind ?? 'document'}`);
  return found.spec;
}

/** The environment as the container gets it, with something in place of each secret. */
function environmentOf(container: Container, shared: string = ''): Record<string, string> {
  const own = (container.env ?? []).map(({ name, value, valueFrom }): [string, string] => {
    if (valueFrom === undefined) return [name, value ?? ''];
    const secret = SECRETS[name];
    expect(secret, `${name} comes from a secret`).toBeDefined();
    return [name, secret ?? ''];
  });
  const file = [...shared.matchAll(/^([A-Z]\w*)=(.*)$/gm)].map(([, name = '', value = '']): [string, string] => [
    name,
    value,
  ]);
  return Object.fromEntries([...file, ...own]);
}

function mebibytes(memory: string): number {
  const [, count, unit] = /^(\d+)(Mi|Gi)$/.exec(memory) ?? [];
  return Number(count) * (unit === 'Gi' ? 1024 : 1);
}

type Template = { template: { metadata: { annotations: Record<string, string> }; spec: PodSpec } };
const cloudRun = specOf('cloud-run/service.yaml') as Template;
const cloudRunOperators = specOf('cloud-run/operator-service.yaml') as Template;
const cloudRunJob = specOf('cloud-run/migrate-job.yaml') as { template: { spec: Template } };
const deployment = specOf('kubernetes/deployment.yaml') as Template;
const kubernetesJob = specOf('kubernetes/migrate/job.yaml') as Template;
const shared = read('kubernetes/expediter.env');

const services: [string, PodSpec, Record<string, string>][] = [
  ['Cloud Run', cloudRun.template.spec, environmentOf(cloudRun.template.spec.containers[0])],
  ['Kubernetes', deployment.template.spec, environmentOf(deployment.template.spec.containers[0], shared)],
  [
    'Cloud Run, for operators',
    cloudRunOperators.template.spec,
    environmentOf(cloudRunOperators.template.spec.containers[0]),
  ],
];

describe.each(services)('the service on %s', (_where, { containers: [container] }, environment) => {
  it('has every variable that is required, and none that the service does not read', () => {
    expect(Object.keys(environment).filter((name) => !(CONFIG_NAMES as readonly string[]).includes(name))).toEqual([]);
    expect(() => readConfig(environment)).not.toThrow();
    // Optional for the service, and needed by whoever runs it.
    expect(environment).toMatchObject({ PUBLIC_URL: expect.any(String), OPERATOR_TOKEN: expect.any(String) });
    expect(environment['PUSH_AUDIENCE']).toBe(`${environment['PUBLIC_URL']}/pubsub/push`);
    for (const { name, value } of container.env ?? []) if (name in SECRETS) expect(value).toBeUndefined();
    expect(environment, 'the owner of the tables is for the migration').not.toHaveProperty('OWNER_DATABASE_URL');
    for (const name of Object.keys(SECRETS)) expect(shared).not.toMatch(new RegExp(`^${name}=`, 'm'));
  });

  it('is probed where it answers', () => {
    const health = readFileSync(join(PROJECT, 'src/http/health.ts'), 'utf8');
    const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
    for (const probe of probes.filter((each) => each !== undefined)) {
      expect(health).toContain(`scope.get('${probe.httpGet.path}'`);
    }
    // Never by what depends on Postgres: an outage would restart everything.
    expect(container.livenessProbe?.httpGet.path).toBe('/healthz');
    expect(container.ports?.[0]?.containerPort).toBe(8080);
  });

  it('gets the memory that the image lets V8 take, and half as much again', () => {
    const heap = Number(/--max-old-space-size=(\d+)/.exec(readFileSync(join(PROJECT, 'Dockerfile'), 'utf8'))?.[1]);
    expect(mebibytes(container.resources.limits.memory)).toBeGreaterThanOrEqual(heap * 1.5);
  });
});

/** A NetworkPolicy's rule, as far as it is read here. */
type Ingress = { from?: unknown[]; ports: { port: number }[] };
type ServicePorts = { type?: string; selector: Record<string, string>; ports: { port: number; targetPort: string }[] };

describe('the public side has no route of operators', () => {
  it('on Kubernetes: the gateway leads to a Service that has not their port, whose own nobody outside reaches', () => {
    const [, , environment = {}] = services[1] ?? [];
    const { PORT, OPERATOR_PORT } = readConfig(environment);
    const ports = deployment.template.spec.containers[0].ports;
    expect(ports).toEqual([
      { name: 'http', containerPort: PORT },
      { name: 'operator', containerPort: OPERATOR_PORT },
    ]);
    const outside = specOf('kubernetes/service.yaml') as ServicePorts;
    const operators = specOf('kubernetes/operator-service.yaml') as ServicePorts;
    expect(outside.ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(operators.ports.map(({ targetPort }) => targetPort)).toEqual(['operator']);
    expect(operators.selector).toEqual(outside.selector);
    // ClusterIP.
    expect([outside.type, operators.type]).toEqual([undefined, undefined]);

    const { rules } = specOf('kubernetes/gateway/route.yaml') as {
      rules: { backendRefs: { name: string; port: number }[] }[];
    };
    const [{ metadata }] = manifests('kubernetes/service.yaml') as [Manifest];
    const leadsTo = { name: metadata.name, port: outside.ports[0]?.port };
    for (const { backendRefs } of rules) expect(backendRefs).toEqual([leadsTo]);

    const { ingress } = specOf('kubernetes/network-policy.yaml') as { ingress: Ingress[] };
    const anybody = ingress.filter(({ from }) => from === undefined).flatMap((rule) => rule.ports);
    expect(anybody.map(({ port }) => port)).toEqual([PORT]);
    const some = ingress.filter(({ from }) => (from?.length ?? 0) > 0).flatMap((rule) => rule.ports);
    expect(some.map(({ port }) => port)).toEqual([OPERATOR_PORT]);
  });

  it('on Cloud Run: it leads to the port of webhooks, and Google lets in whom it knows where operators are', () => {
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
    expect(services[2]?.[2]).toEqual({ ...services[0]?.[2], POOL_SIZE: '5', OPERATOR_PORT: port });
    const collector = read('monitoring/cloud-run-collector.yaml');
    expect(collector).toContain(`targets: ['127.0.0.1:${OPERATOR_PORT}']`);
    const image = (template: Template): string => template.template.spec.containers[0].image;
    expect(image(cloudRunOperators)).toBe(image(cloudRun));
  });
});

describe('the service on Kubernetes', () => {
  const { spec } = deployment.template;

  it('is given the time to drain and to finish', () => {
    const config = readConfig(services[1]?.[2] ?? {});
    expect(config.DRAIN_DELAY_MS).toBe(8_000);
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(stopsWithinS(config));
    expect(stopsWithinS(config), 'a call that had begun is over').toBeGreaterThan(POS_CALL_S + AIR_S);
    const [{ readinessProbe }] = spec.containers;
    // Seen as not ready well within the drain.
    const seenAfter = (readinessProbe?.periodSeconds ?? Infinity) * (readinessProbe?.failureThreshold ?? 1);
    expect(seenAfter * 1_000).toBeLessThan(config.DRAIN_DELAY_MS);
    expect(readinessProbe?.httpGet.path).toBe('/readyz');
  });

  it.each([
    ['service', spec],
    ['job', kubernetesJob.template.spec],
  ])('the %s runs as nobody in particular on a root that is read-only', (_name, { securityContext, containers }) => {
    expect(securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(containers[0].securityContext).toEqual({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('the connections of all pods, and of one more during a rollout, fit into the Postgres that the script makes', () => {
    const most = (specOf('kubernetes/autoscaling.yaml') as { maxReplicas: number }).maxReplicas;
    const onCloudRun = Number(cloudRun.template.metadata.annotations['autoscaling.knative.dev/maxScale']);
    const connections = Number(
      /max_connections=(\d+)/.exec(readFileSync(join(PROJECT, 'deploy/google-cloud/set-up.sh'), 'utf8'))?.[1],
    );
    const { POOL_SIZE } = readConfig(services[1]?.[2] ?? {});
    expect((most + 1) * POOL_SIZE).toBeLessThan(connections - 20);
    // Two revisions at once, of each service.
    const operators = Number(cloudRunOperators.template.metadata.annotations['autoscaling.knative.dev/maxScale']);
    const inAll =
      onCloudRun * readConfig(services[0]?.[2] ?? {}).POOL_SIZE +
      operators * readConfig(services[2]?.[2] ?? {}).POOL_SIZE;
    expect(2 * inAll).toBeLessThan(connections - 20);
  });

  it('every kustomization names files that are there, and leaves none out', () => {
    for (const folder of ['', 'migrate', 'gateway']) {
      const at = join(PROJECT, 'deploy/kubernetes', folder);
      const { resources } = readKustomization(at);
      const files = readdirSync(at).filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml');
      expect(resources.sort(), folder).toEqual(files.sort());
      for (const file of files) manifests(join('kubernetes', folder, file));
    }
  });

  it('is made yours by what docs/deploy.md writes: your image, your account', () => {
    const document = readFileSync(join(PROJECT, 'docs/deploy.md'), 'utf8');
    const block = /^```sh\n(mkdir -p deploy\/mine[^]*?)^```$/m.exec(document)?.[1];
    const folder = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'mine-'));
    cpSync(join(PROJECT, 'deploy/kubernetes'), join(folder, 'deploy/kubernetes'), { recursive: true });
    const { status, stderr } = spawnSync('bash', ['-eu'], {
      cwd: folder,
      input: block ?? 'exit 1',
      env: { ...process.env, PROJECT: 'theirs', IMAGE: 'registry.internal:5000/expediter:1.2.3' },
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const [newName, newTag] = ['registry.internal:5000/expediter', '1.2.3'];
    for (const [at, { template }] of [
      ['mine', deployment],
      ['mine/migrate', kubernetesJob],
    ] as const) {
      const { resources, images } = readKustomization(join(folder, 'deploy', at));
      expect(images).toEqual([{ name: template.spec.containers[0].image, newName, newTag }]);
      // Renamed below, it would not be found by that name any more.
      for (const each of resources) expect(readKustomization(join(folder, 'deploy', at, each)).images).toBeUndefined();
    }
    const mine = readFileSync(join(folder, 'deploy/mine/kustomization.yaml'), 'utf8');
    expect(mine).toContain('iam.gke.io/gcp-service-account: expediter@theirs.iam.gserviceaccount.com');
    rmSync(folder, { recursive: true });
  });

  it('the door lets go of idle connections before the service does', () => {
    const keepAliveMs = Number(
      /KEEP_ALIVE_MS = ([\d_]+)/
        .exec(readFileSync(join(PROJECT, 'src/server/listener.ts'), 'utf8'))?.[1]
        ?.replaceAll('_', ''),
    );
    const { timeout } = specOf('kubernetes/gateway/gateway.yaml', 'BackendTrafficPolicy') as {
      timeout: { http: { connectionIdleTimeout: string } };
    };
    expect(Number.parseInt(timeout.http.connectionIdleTimeout, 10) * 1_000).toBeLessThan(keepAliveMs);
  });
});

describe('the streams to members', () => {
  const numberIn = (file: string, name: string): number =>
    Number(new RegExp(`${name} = ([\\d_]+)`).exec(readFileSync(join(PROJECT, file), 'utf8'))?.[1]?.replaceAll('_', ''));

  it('on Kubernetes: the door gives each pod all that it may hold, and cuts none of them', () => {
    const { rules } = specOf('kubernetes/gateway/route.yaml') as {
      rules: { matches: { path: { value: string } }[]; timeouts?: { request: string } }[];
    };
    const follow = rules.find(({ matches }) => matches.some(({ path }) => path.value === '/follow'));
    expect(follow?.timeouts).toEqual({ request: '0s' });
    const { circuitBreaker } = specOf('kubernetes/gateway/gateway.yaml', 'BackendTrafficPolicy') as {
      circuitBreaker: Record<string, number>;
    };
    const pods = (specOf('kubernetes/autoscaling.yaml') as { maxReplicas: number }).maxReplicas;
    const most = readConfig(services[1]?.[2] ?? {}).FOLLOW_STREAMS_MAX * pods;
    expect(Math.min(...Object.values(circuitBreaker))).toBeGreaterThan(most);
    expect(Object.keys(circuitBreaker).sort()).toEqual(['maxConnections', 'maxParallelRequests', 'maxPendingRequests']);
  });

  it('on Cloud Run: a stream ends by itself before it is cut', () => {
    const { timeoutSeconds } = cloudRun.template.spec as { timeoutSeconds?: number };
    const minutes = numberIn('src/http/follow/member-streams.ts', 'MAX_AGE_MS');
    expect(minutes).toBe(30);
    expect(timeoutSeconds).toBeGreaterThan(1.1 * minutes * 60);
  });
});

describe('the service on Cloud Run', () => {
  const { annotations } = cloudRun.template.metadata;

  it('works between requests, in one process at least', () => {
    expect(annotations['run.googleapis.com/cpu-throttling']).toBe('false');
    expect(Number(annotations['autoscaling.knative.dev/minScale'])).toBeGreaterThanOrEqual(1);
  });

  it('drains and finishes within the ten seconds that it is given', () => {
    expect(stopsWithinS(readConfig(services[0]?.[2] ?? {}))).toBeLessThan(10);
  });

  it('is waited for no longer than Cloud Run allows', () => {
    const probe = cloudRun.template.spec.containers[0].startupProbe;
    expect((probe?.periodSeconds ?? 0) * (probe?.failureThreshold ?? 0)).toBeLessThanOrEqual(240);
  });
});

describe.each([
  ['Cloud Run', cloudRunJob.template.spec.template.spec],
  ['Kubernetes', kubernetesJob.template.spec],
])('the migration on %s', (_where, { containers: [container] }) => {
  it('is `expediter migrate`, with the database alone, of which it has both roles', () => {
    expect(container.command).toEqual(['expediter', 'migrate']);
    const environment = environmentOf(container);
    expect(Object.keys(environment)).toEqual(['DATABASE_URL', 'OWNER_DATABASE_URL']);
    expect(() => readConfigOf(environment, 'DATABASE_URL', 'OWNER_DATABASE_URL')).not.toThrow();
  });

  it('runs as somebody whose secrets the service cannot read', () => {
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
  const document = readFileSync(join(PROJECT, 'docs/deploy.md'), 'utf8');

  it('has shell in every block of shell', () => {
    const blocks = [...document.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);
    expect(blocks.length).toBeGreaterThan(15);
    for (const block of blocks) {
      const { status, stderr } = spawnSync('bash', ['-n'], { input: block, encoding: 'utf8' });
      expect({ block, status, stderr }).toEqual({ block, status: 0, stderr: '' });
    }
  });

  it('leads to files that are there', () => {
    const links = [...document.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, link = '']) => link);
    for (const link of links) expect(existsSync(join(PROJECT, 'docs', link)), link).toBe(true);
    const paths = [...document.matchAll(/(?<![\w./-])deploy\/[\w./-]+\w/g)].map(([path]) => path);
    for (const path of paths.filter((each) => !each.startsWith('deploy/mine') && each !== 'deploy/expediter')) {
      expect(existsSync(join(PROJECT, path)), path).toBe(true);
    }
  });

  it('verifies who Postgres is wherever the way leads over a network', () => {
    const files = [
      'docs/deploy.md',
      'docs/try-it.md',
      '.env.example',
      'deploy/google-cloud/set-up.sh',
      'src/server/config.ts',
    ];
    const urls = files.flatMap((file) => [
      ...readFileSync(join(PROJECT, file), 'utf8').matchAll(/postgres:\/\/[^\s'"`]*@[^\s'"`]+/g),
    ]);
    expect(urls.length).toBeGreaterThan(8);
    for (const [url] of urls) expect(url).toMatch(/[?&](sslmode=verify-full|host=\/)|@127\.0\.0\.1/);
  });

  it('names secrets, accounts and topics as the script makes them', () => {
    const script = readFileSync(join(PROJECT, 'deploy/google-cloud/set-up.sh'), 'utf8');
    const spills = services.flatMap(([, , { SPILL_TOPIC }]) =>
      SPILL_TOPIC === undefined ? [] : [SPILL_TOPIC, `${SPILL_TOPIC}-drain`],
    );
    const others = ['expediter-orders', 'expediter-dead-letter', 'order-status', 'expediter-settings-key'];
    for (const name of [...others, ...new Set(spills)]) {
      expect(document).toContain(name);
      expect(script).toContain(name);
    }
    const containers = [cloudRun.template.spec.containers[0], cloudRunJob.template.spec.template.spec.containers[0]];
    const secrets = containers.flatMap(({ env }) => env?.flatMap(({ valueFrom }) => valueFrom ?? []) ?? []);
    for (const { secretKeyRef } of secrets) expect(script).toContain(secretKeyRef.name);
  });
});

it('reaches Postgres over a socket by the URL that the script writes', async () => {
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

it('what people read with goes against a standby', async () => {
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
