/**
 * `deploy/compose`, held to the specification of Compose, to the code and to the Dockerfile. No engine is needed.
 * `test/system/compose-up.test.ts` starts it.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { describe, expect, it, onTestFinished } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { CONFIG_NAMES, SECRETS, isPushed, readConfig, readConfigOf } from '../../src/config/config.ts';
import { COMPOSE, readCompose, readDotEnv, type Service } from '../support/read-compose.ts';
import { read } from '../support/read-project.ts';

const example = read('deploy/compose/.env.example');
const caddyfile = read('deploy/compose/Caddyfile');
const { version } = JSON.parse(read('package.json')) as { version: string };

/** .env as docs/deploy.md makes it. */
const env: Record<string, string> = {
  ...makeEnv(),
  ORDER_API_URL: 'https://orders.example.com/graphql',
  STATUS_WEBHOOK_URL: 'http://host.docker.internal:3000/',
  ALLOW_PRIVATE_HOSTS: 'host.docker.internal',
};
const compose = readCompose(env);
const services = Object.entries(compose.services);
const serviceOf = (name: string): Service => compose.services[name] ?? {};
/** The services of our image, and what else they may have: our variables are those of the configuration. */
const OURS = ['expediter-1', 'expediter-2', 'migrate'];
const OF_GOOGLES_LIBRARIES = ['GOOGLE_APPLICATION_CREDENTIALS'];

function makeEnv(): Record<string, string> {
  const block = /^```sh\n(cd deploy\/compose\n[^]*?)^```$/m.exec(read('docs/deploy.md'))?.[1] ?? 'exit 1';
  const folder = mkdtempSync(join(tmpdir(), 'compose-'));
  try {
    spawnSync('mkdir', ['-p', join(folder, 'deploy')]);
    spawnSync('cp', ['-r', COMPOSE, join(folder, 'deploy/compose')]);
    const { status, stderr } = spawnSync('bash', ['-eu'], { cwd: folder, input: block, encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    const made = join(folder, 'deploy/compose/.env');
    expect(statSync(made).mode & 0o077, 'only its owner reads it').toBe(0);
    return readDotEnv(readFileSync(made, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const seconds = (duration: string | undefined): number => {
  const [, count, unit] = /^(\d+)(s|m)$/.exec(duration ?? '') ?? [];
  return Number(count) * (unit === 'm' ? 60 : 1);
};
const mebibytes = (memory: string | undefined): number => {
  const [, count, unit] = /^(\d+)(M|G)$/.exec(memory ?? '') ?? [];
  return Number(count) * (unit === 'G' ? 1024 : 1);
};

it('compose.yaml follows the specification of Compose', () => {
  const packageFile = createRequire(import.meta.url).resolve('dclint/package.json');
  const { $schema, ...schema } = JSON.parse(
    readFileSync(join(packageFile, '../schemas/compose.schema.json'), 'utf8'),
  ) as { $schema: string };
  expect($schema).toContain('draft-07');
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  const valid = ajv.compile(schema);
  const written = parse(read('deploy/compose/compose.yaml'), { merge: true, maxAliasCount: -1 }) as typeof compose;
  expect({ valid: valid(written), errors: valid.errors }).toEqual({ valid: true, errors: null });
  // It would notice a mistake.
  expect(valid({ services: { postgres: { ...written.services['postgres'], healtcheck: {} } } })).toBe(false);
});

describe('the variables of compose.yaml', () => {
  it('are exactly those of .env.example', () => {
    const text = read('deploy/compose/compose.yaml').replaceAll(/^ *#.*$/gm, '');
    const used = new Set([...text.matchAll(/(?<!\$)\$\{(\w+)/g)].map(([, name]) => name));
    const written = new Set([...example.matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(([, name]) => name));
    expect(written).toEqual(used);
  });

  it.each(['SETTINGS_KEY', 'OWNER_PASSWORD', 'SERVICE_PASSWORD', 'GRAFANA_PASSWORD'])(
    'include %s without a default: if it is empty, Compose stops and names .env.example',
    (name) => {
      expect(example).toMatch(new RegExp(`^# (openssl|echo) .*\n(#.*\n)?${name}=$`, 'm'));
      expect(env).toHaveProperty(name);
      expect(() => readCompose({ ...env, [name]: '' })).toThrow(
        `required variable ${name} is missing a value: see .env.example`,
      );
    },
  );

  it('give Prometheus METRICS_TOKEN, and never OPERATOR_TOKEN', () => {
    expect(env).toMatchObject({ OPERATOR_TOKEN: expect.stringMatching(/^[0-9a-f]{64}$/) as string, METRICS_TOKEN: '' });
    const { services } = readCompose({ ...env, OPERATOR_TOKEN: '', METRICS_TOKEN: 'exo_of-prometheus' });
    expect(services['expediter-1']?.environment).toMatchObject({ OPERATOR_TOKEN: '' });
    expect(services['prometheus']?.environment).toEqual({ METRICS_TOKEN: 'exo_of-prometheus' });
    expect(JSON.stringify(services['prometheus']?.command)).toContain('${METRICS_TOKEN:?is made after');
  });

  it('that are secret are required, unless they are optional for the service', () => {
    const text = read('deploy/compose/compose.yaml');
    const given = [...text.matchAll(/^ +(\w*(?:PASSWORD|TOKEN|KEY)\w*): (.*)$/gm)];
    expect(given.length).toBeGreaterThan(5);
    for (const [, name = '', value] of given) {
      expect(value, name).toMatch(
        /^(ORDER_API|OPERATOR|METRICS)_TOKEN$/.test(name) ? /^\$\{\w+:-\}$/ : /^(&[\w-]+ )?\$\{\w+:\?|^\*/,
      );
    }
  });

  it('for the service are all known to it, and their values are valid', () => {
    for (const name of ['expediter-1', 'expediter-2']) {
      const given = serviceOf(name).environment ?? {};
      const unknown = Object.keys(given).filter((each) => !(CONFIG_NAMES as readonly string[]).includes(each));
      expect(unknown.sort()).toEqual(OF_GOOGLES_LIBRARIES);
      expect(given, 'the owner of the tables is for the migration').not.toHaveProperty('OWNER_DATABASE_URL');
      expect(() => readConfig(given)).not.toThrow();
    }
    expect(serviceOf('expediter-1').environment).toMatchObject({
      PUBLIC_URL: 'https://localhost',
      CONSOLE_URL: 'https://localhost:8443',
    });
    const { environment: migrate = {} } = serviceOf('migrate');
    expect(Object.keys(migrate)).toEqual(['DATABASE_URL', 'OWNER_DATABASE_URL']);
    expect(() => readConfigOf(migrate, 'DATABASE_URL', 'OWNER_DATABASE_URL')).not.toThrow();
    expect(migrate['DATABASE_URL']).toBe(serviceOf('expediter-1').environment?.['DATABASE_URL']);
  });

  it('send statuses by webhook, with a new secret, and need no Google', () => {
    const config = readConfig(serviceOf('expediter-1').environment ?? {});
    expect(config).toMatchObject({
      STATUS_WEBHOOK_URL: env['STATUS_WEBHOOK_URL'],
      STATUS_WEBHOOK_SECRET: [expect.stringMatching(/^whsec_.{44}$/)],
    });
    expect(config.GOOGLE_CLOUD_PROJECT).toBeUndefined();
    expect(isPushed(config)).toBe(false);
    const [host = ''] = serviceOf('expediter-1').extra_hosts?.[0]?.split(':') ?? [];
    expect(example).toContain(host);
    const neither = readCompose({ ...env, STATUS_WEBHOOK_URL: '' }).services['expediter-1']?.environment ?? {};
    expect(() => readConfig(neither)).toThrow('is unset, and so is STATUS_WEBHOOK_URL');
  });

  it("make the service use Google's Pub/Sub with the lines of it, which name what set-up.sh makes", () => {
    const google = readDotEnv(example.replaceAll(/^# (?=[A-Z_]+=)/gm, ''));
    const given = readCompose({ ...env, ...google, ...env }).services['expediter-1']?.environment ?? {};
    expect(readConfig(given)).toMatchObject({ PUSH_AUDIENCE: 'https://localhost/pubsub/push', PUSH_AUTH: 'oidc' });
    const script = read('deploy/google-cloud/set-up.sh');
    for (const name of ['STATUS_TOPIC', 'KITCHEN_TOPIC', 'ATTENTION_TOPIC', 'SPILL_TOPIC']) {
      expect(script, name).toContain(google[name]);
      expect(given[name]).toBe(google[name]);
    }
  });
});

describe.each(services)('%s', (name, service) => {
  it('has an image with an exact version', () => {
    const { image = '', build } = service;
    if (OURS.includes(name)) {
      expect(image).toBe(`localhost/expediter:${version}`);
      // One service builds it for all.
      expect(build).toBe(name === 'migrate' ? '../..' : undefined);
      expect(existsSync(join(COMPOSE, '../..', 'Dockerfile'))).toBe(true);
    } else {
      expect(build).toBeUndefined();
      // Postgres has no third number.
      expect(image).toMatch(/^postgres:\d+\.\d+$|:v?\d+\.\d+\.\d+(-[a-z]+)?$/);
    }
  });

  it('has a restart policy, a memory limit, and a health check if it keeps running', () => {
    if (name === 'migrate') expect(service).toMatchObject({ restart: 'no' });
    else {
      expect(service.restart).toBe('unless-stopped');
      expect(service.healthcheck?.test[0]).toMatch(/^CMD(-SHELL)?$/);
      expect(seconds(service.healthcheck?.start_period)).toBeGreaterThanOrEqual(30);
    }
    expect(mebibytes(service.deploy?.resources.limits.memory)).toBeGreaterThanOrEqual(256);
  });

  it('has no extra rights, and a read-only root', () => {
    expect(service.read_only).toBe(true);
    expect(service.cap_drop).toEqual(['ALL']);
    expect(service.cap_add).toEqual(name === 'caddy' ? ['NET_BIND_SERVICE'] : undefined);
    expect(service.security_opt).toEqual(['no-new-privileges:true']);
  });

  it('mounts only files that exist and volumes that compose.yaml names', () => {
    for (const volume of service.volumes ?? []) {
      const source = typeof volume === 'string' ? (volume.split(':')[0] ?? '') : volume.source;
      if (!source.startsWith('.')) {
        expect(source === '/dev/null' || source in compose.volumes, source).toBe(true);
        continue;
      }
      expect(volume).toMatch(/:ro$/);
      expect(existsSync(join(COMPOSE, source)), source).toBe(true);
      // Docker keeps the mode, and the users of the containers are others.
      const { mode } = statSync(join(COMPOSE, source));
      expect(mode & 0o004, source).toBe(0o004);
      if (source.endsWith('.sh')) expect(mode & 0o111, source).toBe(0o111);
    }
  });

  it('waits until the services that it depends on are healthy', () => {
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      expect(compose.services).toHaveProperty([other]);
      expect(condition).toBe(other === 'migrate' ? 'service_completed_successfully' : 'service_healthy');
    }
  });

  it('is only in networks that compose.yaml defines', () => {
    const { networks = [], network_mode: mode } = service;
    const names = Array.isArray(networks) ? networks : Object.keys(networks);
    for (const network of names) expect(compose.networks).toHaveProperty([network]);
    expect(names.length > 0).toBe(mode === undefined);
    // What X-Forwarded-For is trusted from.
    if (names.includes('front')) expect(name).toMatch(/^(caddy|expediter-\d)$/);
  });
});

describe('the service', () => {
  const [first, second] = ['expediter-1', 'expediter-2'].map(serviceOf);
  const { environment = {}, stop_grace_period: grace, healthcheck, ulimits, deploy } = first ?? {};
  const config = readConfig(environment);

  it('runs as two processes with the same settings', () => {
    const { networks: _one, ...one } = first ?? {};
    const { networks: _two, ...two } = second ?? {};
    expect(one).toEqual(two);
  });

  it('is reached at the ports where it listens', () => {
    const exposed = /^EXPOSE (\d+)$/m.exec(read('Dockerfile'))?.[1];
    expect(String(config.PORT)).toBe(exposed);
    expect(caddyfile).toContain(`{$PUBLIC_UPSTREAMS:expediter-1:${config.PORT} expediter-2:${config.PORT}}`);
    const port = config.OPERATOR_PORT;
    expect(caddyfile).toContain(`{$OPERATOR_UPSTREAMS:expediter-1:${port} expediter-2:${port}}`);
    expect(healthcheck?.test.at(-1)).toContain(`http://127.0.0.1:${config.PORT}/readyz`);
    expect(caddyfile).toMatch(/^\thealth_uri \/readyz$/m);
    for (const nth of [1, 2]) {
      const networks = serviceOf(`expediter-${nth}`).networks as Record<string, { aliases?: string[] }>;
      expect(networks['inside']?.aliases).toEqual([`expediter-${nth}.internal`, 'expediter']);
      expect(read('deploy/monitoring/prometheus.yaml')).toContain(`- expediter-${nth}.internal:${port}`);
    }
  });

  it('drains until Caddy has noticed, and then has time to finish a call to a POS', () => {
    const [, interval] = /health_interval (\d+)s/.exec(caddyfile) ?? [];
    expect(config.DRAIN_DELAY_MS).toBeGreaterThanOrEqual(3 * Number(interval) * 1_000);
    const [failing, trying] = ['fail_duration', 'lb_try_duration'].map((name) =>
      Number(new RegExp(`^\\t${name} (\\d+)s$`, 'm').exec(caddyfile)?.[1]),
    );
    expect(trying).toBeGreaterThan(2 * (failing ?? Infinity));
    expect(seconds(grace) * 1_000).toBeGreaterThan(config.DRAIN_DELAY_MS + config.DRAIN_FINISH_MS + 1_000);
    // A call to a POS that had begun.
    expect(config.DRAIN_FINISH_MS).toBeGreaterThan(15_000);
    expect(caddyfile).toMatch(/^\t+keepalive off$/m);
  });

  it('has the memory and the file descriptors that docs/deploy.md asks for', () => {
    const heap = Number(/--max-old-space-size=(\d+)/.exec(read('Dockerfile'))?.[1]);
    expect(mebibytes(deploy?.resources.limits.memory)).toBeGreaterThanOrEqual(heap * 1.5);
    expect(ulimits?.nofile).toBeGreaterThan(2 * config.FOLLOW_STREAMS_MAX);
    expect(serviceOf('caddy').ulimits?.nofile).toBeGreaterThan(4 * config.FOLLOW_STREAMS_MAX);
  });

  it("trusts only Caddy's network as proxy", () => {
    const { ipam } = compose.networks['front'] as { ipam: { config: { subnet: string }[] } };
    expect(config.TRUSTED_PROXIES).toEqual(ipam.config.map(({ subnet }) => subnet));
  });

  it('reaches Postgres through a socket, as a role that owns no table', () => {
    const url = new URL(environment['DATABASE_URL'] ?? '');
    const folder = url.searchParams.get('host');
    expect(url.username).toBe('expediter');
    for (const each of ['postgres', 'backup', 'migrate', 'expediter-1']) {
      const targets = (serviceOf(each).volumes ?? []).map((volume) =>
        typeof volume === 'string' ? volume : `${volume.source}:${volume.target}`,
      );
      expect(targets, each).toContain(`postgres-socket:${folder}`);
    }
    expect(serviceOf('postgres')).toMatchObject({ network_mode: 'none', user: 'postgres' });
    expect(serviceOf('backup').image).toBe(serviceOf('postgres').image);
    const owner = new URL(serviceOf('migrate').environment?.['OWNER_DATABASE_URL'] ?? '');
    const roles = read('deploy/compose/postgres/create-roles.sh');
    expect(roles).toContain(`CREATE ROLE ${url.username} LOGIN`);
    expect(roles).toContain(`CREATE ROLE ${owner.username} LOGIN`);
    expect(url.pathname).toBe(owner.pathname);
    expect(read('deploy/compose/postgres/pg_hba.conf')).toMatch(
      new RegExp(`^local +expediter +${owner.username},${url.username} +scram-sha-256$`, 'm'),
    );
  });
});

describe('the public side', () => {
  it('is only Caddy: all other ports are open to this machine only', () => {
    const ports = services.flatMap(([name, each]) => (each.ports ?? []).map((port) => `${name} ${port}`));
    expect(ports).toEqual([
      'caddy 80:80',
      'caddy 443:443',
      'caddy 127.0.0.1:8443:8443',
      'prometheus 127.0.0.1:9090:9090',
      'grafana 127.0.0.1:3000:3000',
    ]);
  });

  it('logs no URL and no header, because they may have a token', () => {
    const [, fields] = /^\t\t\tfields \{([^}]*)\}/m.exec(caddyfile) ?? [];
    expect(
      fields
        ?.split(/\s+delete\s+/)
        .join(' ')
        .trim(),
    ).toBe('request>uri request>headers resp_headers');
    expect(caddyfile.match(/^\s*log\b/gm), 'no log of a site with a format of its own').toHaveLength(1);
    const [nginx = ''] = /log_format .*;/.exec(read('docs/live-to-members.md')) ?? [];
    expect(nginx.match(/\$\w+/g)?.join(' ')).toBe('$remote_addr $time_local $request_method $status');
  });

  it('forwards only the public paths of docs/deploy.md', () => {
    const [, paths = ''] = /^\t@public path (.*)$/m.exec(caddyfile) ?? [];
    expect(paths).toBe('/webhook/* /answer/* /pubsub/push /signal /readyz /follow /availability');
    const [, upstream = ''] = /handle @public \{\n\t+reverse_proxy (.*) \{/.exec(caddyfile) ?? [];
    expect(upstream).toMatch(/^\{\$PUBLIC_UPSTREAMS:/);
  });
});

it('.env.example has no value for a secret that the service may read from a file', () => {
  for (const name of SECRETS) expect(example).not.toMatch(new RegExp(`^${name}=.`, 'm'));
});

it('pin-images.sh pins each third-party image by its digest, and names an image that it could not pin', () => {
  const folder = mkdtempSync(join(tmpdir(), 'expediter-pins-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['compose.yaml', 'pin-images.sh']) cpSync(join(COMPOSE, name), join(folder, name));
  const pin = (digit: string, silent: string): ReturnType<typeof spawnSync> => {
    const answer = `[ "$4" = '${silent}' ] && exit 1; echo "Digest:    sha256:$(printf '${digit}%.0s' $(seq 64))"`;
    writeFileSync(join(folder, 'docker'), `#!/bin/sh\n${answer}\n`, { mode: 0o755 });
    const PATH = `${folder}:${process.env['PATH']}`;
    return spawnSync(join(folder, 'pin-images.sh'), { env: { PATH }, encoding: 'utf8' });
  };
  const images = (): string[] =>
    [...readFileSync(join(folder, 'compose.yaml'), 'utf8').matchAll(/^ *image: ([a-z].*)$/gm)].map(
      ([, name = '']) => name,
    );
  const before = images();
  expect(pin('1', 'caddy:2.11.4-alpine')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('caddy') as string,
  });
  expect(images()).toEqual(
    before.map((name) => (name.startsWith('caddy') ? name : `${name}@sha256:${'1'.repeat(64)}`)),
  );
  expect(pin('2', '')).toMatchObject({ status: 0, stderr: '' });
  expect(images()).toEqual(before.map((name) => `${name}@sha256:${'2'.repeat(64)}`));
});

it('each example of ALERT_RECEIVER is one receiver of Alertmanager', () => {
  const values = [...example.matchAll(/^# ALERT_RECEIVER='(.*)'$/gm)].map(([, value = '']) => value);
  expect(values).toHaveLength(2);
  for (const value of ['', ...values]) {
    const receiver = parse(`{name: on-call, ${value}}`) as Record<string, unknown>;
    expect(Object.keys(receiver).join(' ')).toMatch(value === '' ? /^name$/ : /^name [a-z]+_configs$/);
  }
});

it("every tmpfs except /tmp belongs to the image's user, because a restart forgets its mode", () => {
  for (const [name, { tmpfs = [] }] of services) {
    for (const each of tmpfs.filter((path) => path !== '/tmp')) expect(each, name).toMatch(/:uid=\d+,gid=\d+$/);
  }
});

/** The commands of the documented upgrade. */
const upgrade = (): string[] => {
  const [block = ''] = /(?<=\*\*Upgrade\*\*[^`]*```sh\n)[^`]*/.exec(read('docs/deploy.md')) ?? [];
  const steps = block.split('\n').map((line) => line.replace(/ +#.*/, '').replace('docker compose ', ''));
  return steps.filter(Boolean);
};

it('the documented upgrade recreates one process after the other, and Caddy alone', () => {
  // With --no-deps, a container has another hash, so that the last command would recreate them all together.
  expect(upgrade().slice(0, -1)).toEqual([
    'build',
    'run --rm migrate',
    'up --detach --wait expediter-1',
    'up --detach --wait expediter-2',
    'up --detach --wait caddy',
    'exec -T caddy caddy reload --config - --adapter caddyfile <Caddyfile',
    'up --detach',
  ]);
});

it('after the documented upgrade, every service reads its new files', () => {
  // The mount of a single file keeps the file from before the checkout until the container starts again.
  const isFile = (volume: unknown): boolean => {
    const [source = ''] = String(volume).split(':');
    return source.startsWith('.') && statSync(join(COMPOSE, source)).isFile();
  };
  const names = services.filter(([, { volumes = [] }]) => volumes.some(isFile)).map(([name]) => name);
  const [, restarted = ''] = /^restart (.*)$/.exec(upgrade().at(-1) ?? '') ?? [];
  // pg_hba.conf and create-roles.sh are those of the first start: Postgres is not restarted for them.
  expect([...restarted.split(' '), 'caddy', 'postgres'].toSorted()).toEqual(names.toSorted());
});

it('the commands of docs/deploy.md recover a restored dump before they start the service', async () => {
  const block = /^```sh\n([^`]*backup\.sh restore [^]*?)^```$/m.exec(read('docs/deploy.md'))?.[1] ?? 'exit 1';
  const input = `docker() { printf '%s\\n' "$*"; }\n${block}`;
  const { stdout } = spawnSync('bash', ['-eu'], { input, encoding: 'utf8' });
  const done = stdout.trimEnd().split('\n');
  const ours = 'expediter-1 expediter-2';
  expect(done.map((line) => /^compose (stop|exec|run|start)/.exec(line)?.[1])).toEqual([
    'stop',
    'exec',
    'run',
    'run',
    'start',
    'run',
  ]);
  expect([done[0], done[2], done[4]]).toEqual([
    `compose stop ${ours}`,
    'compose run --rm migrate',
    `compose start ${ours}`,
  ]);
  for (const line of [done[3], done[5]]) {
    const [, words = ''] = /^compose run --rm --no-deps -T expediter-1 expediter (recover .*)$/.exec(line ?? '') ?? [];
    const program = buildProgram();
    program.commands.find((each) => each.name() === 'recover')?.action(() => {});
    await program.parseAsync(words.split(' '), { from: 'user' });
  }
});
