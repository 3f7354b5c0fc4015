import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONSOLE_PACKAGES } from '../../tools/build/runtime-packages.ts';
import { OPERATOR_TOKEN, sendAsIs } from '../../world/system/ask-operator.ts';
import { createEmptyDatabase } from '../../world/postgres/create-database.ts';
import { freePort } from '../../world/network/free-port.ts';
import { logIn } from '../../world/system/log-in.ts';
import { SERVICE_ACCOUNT, post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { makeImage, type Contained, type Image } from './make-image.ts';

const LIMIT_BYTES = 90_000_000;

const project = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};

let image: Image;
beforeAll(async () => {
  image = await makeImage();
});
afterAll(() => image?.remove());

/** Files of the application, from its folder. */
function* filesIn(folder: string): Generator<string> {
  for (const entry of readdirSync(join(image.root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesIn(path);
    else yield path;
  }
}

describe('the image', () => {
  it('is under 90 MB above its base', () => {
    process.stdout.write(`the image is ${(image.sizeAboveBase / 1e6).toFixed(1)} MB above its base\n`);
    expect(image.sizeAboveBase).toBeLessThan(LIMIT_BYTES);
    expect(image.sizeAboveBase).toBeGreaterThan(20_000_000);
  });

  it('has its user, its command, its port and its labels', () => {
    const { config } = image;
    expect(config).toMatchObject({
      User: '1000:1000',
      WorkingDir: '/app',
      Cmd: ['node', '--enable-source-maps', 'dist/main.js'],
      ExposedPorts: { '8080/tcp': {} },
    });
    expect(config.Healthcheck?.Test[0]).toBe('CMD');
    expect(config.Labels).toMatchObject({
      'org.opencontainers.image.title': 'Expediter',
      'org.opencontainers.image.version': project.version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    });
  });

  it('has only the files and packages that the service needs at run time', () => {
    expect(readdirSync(join(image.root, 'app')).sort()).toEqual([
      'compile-cache',
      'dist',
      'migrations',
      'node_modules',
      'package.json',
    ]);
    const files = [...filesIn('app')];
    expect(files.filter((file) => /\.[cm]?ts$/.test(file))).toEqual([]);
    const ours = files.filter((file) => !/^app\/(node_modules|dist\/console)\//.test(file));
    expect(ours.filter((file) => /test(?!-order|-run)|simulat|demo|chaos|bench|\.md$/.test(file))).toEqual([]);
    const modules = (name: string): boolean => existsSync(join(image.root, 'app/node_modules', name));
    expect(
      Object.keys(project.devDependencies)
        .filter((name) => !(name in project.dependencies))
        .filter(modules),
    ).toEqual(
      // What a dependency of ours needs as well.
      Object.keys(project.devDependencies).filter((name) => NEEDED_AS_WELL.has(name)),
    );
    expect(Object.keys(project.dependencies).filter((name) => !modules(name))).toEqual([]);
  });

  it('has no npm', async () => {
    const script = 'for tool in npm npx corepack yarn; do command -v $tool; done; ls /usr/local/lib /opt; true';
    const contained = image.run(['/bin/sh', '-c', script], {});
    expect(await contained.exited).toBe(0);
    expect(contained.output()).not.toMatch(/npm|npx|corepack|yarn|node_modules/);
  });

  it('has the built console, and no package that only its build needs', () => {
    const files = [...filesIn('app/dist/console')].map((file) => file.slice('app/dist/console/'.length));
    for (const name of ['index.html', 'licences.txt']) expect(files).toContain(name);
    for (const name of files) expect(name).toMatch(/^(assets\/)?[\w.-]+\.(html|js|css|svg|txt)(\.br|\.gz)?$/);
    for (const name of files.filter((each) => /\.(html|js|css)$/.test(each))) expect(files).toContain(`${name}.br`);
    for (const name of ['vite', 'rolldown', 'lightningcss', ...CONSOLE_PACKAGES]) {
      expect(existsSync(join(image.root, 'app/node_modules', name)), name).toBe(false);
    }
  });

  it('has a compile cache that its user can read', () => {
    const files = [...filesIn('app/compile-cache')];
    expect(files.length).toBeGreaterThan(180);
    expect(files.filter((file) => (statSync(join(image.root, file)).mode & 0o004) === 0)).toEqual([]);
    expect(files.filter((file) => !file.includes('-1000/'))).toEqual([]);
  });

  it('belongs to root, so that the service cannot change itself', () => {
    for (const file of ['app/dist/main.js', 'app/node_modules', 'app/migrations', 'app/compile-cache']) {
      const { uid, mode } = statSync(join(image.root, file));
      expect({ file, uid, writable: (mode & 0o022) !== 0 }).toEqual({ file, uid: 0, writable: false });
    }
  });
});

/** Development dependencies that the client of Pub/Sub and the schemas bring into production anyway. */
const NEEDED_AS_WELL = new Set(['@grpc/grpc-js', '@grpc/proto-loader', '@types/node', 'ajv', 'yaml']);

describe('the image, run read-only as an ordinary user', () => {
  let system: System;
  let database: string;
  const started: Contained[] = [];
  const run = (command: readonly string[], env: Record<string, string>): Contained => {
    const contained = image.run(command, { METADATA_SERVER_DETECTION: 'none', ...env });
    started.push(contained);
    return contained;
  };

  beforeAll(async () => {
    database = await createEmptyDatabase();
    system = await startSystem({ processes: 0 });
  });
  afterAll(async () => {
    for (const contained of started) {
      try {
        contained.kill('SIGKILL');
      } catch {
        // It has ended.
      }
    }
    await system?.stop();
  });

  it('can write only to /tmp, and is not root', async () => {
    const script = 'id -u; touch /app/x || touch /etc/x || touch /tmp/x && echo tmp';
    const contained = run(['/bin/sh', '-c', script], {});
    expect(await contained.exited).toBe(0);
    expect(contained.output()).toMatch(/^1000$/m);
    expect(contained.output()).toMatch(/\/app\/x': Read-only file system/);
    expect(contained.output()).toMatch(/^tmp$/m);
  });

  it('uses the allocator jemalloc', async () => {
    const script = "console.log(/libjemalloc/.test(require('fs').readFileSync('/proc/self/maps', 'utf8')))";
    const contained = run(['node', '-e', script], {});
    expect(await contained.exited).toBe(0);
    expect(contained.output()).toBe('true\n'); // and the loader says nothing
  });

  it('migrates, accepts a webhook, shows its console, and exits 0 on SIGTERM', async () => {
    const migrated = run(['expediter', 'migrate', '--json'], { DATABASE_URL: database });
    expect(await migrated.exited, migrated.output()).toBe(0);
    expect(migrated.output()).toContain('"0001-baseline"');

    const port = await freePort();
    const env = {
      ...system.env,
      PORT: String(port),
      PUSH_SERVICE_ACCOUNT: SERVICE_ACCOUNT,
      DRAIN_DELAY_MS: '200',
      OPERATOR_TOKEN,
    };
    const main = run(image.config.Cmd, env);
    const url = `http://127.0.0.1:${port}`;
    await until(
      () =>
        fetch(`${url}/readyz`).then(
          (response) => response.status === 200,
          () => false,
        ),
      20_000,
    ).catch((error: unknown) => {
      throw new Error(main.output(), { cause: error });
    });

    await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
    await system.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
    system.urls[0] = url;
    const answer = await post(
      await system.webhookUrl('club-1'),
      statusWebhook({ serviceOrderId: 'order-1', status: 'READY' }),
    );
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    // Which also says that the client of Pub/Sub has all that it reads at run time.
    await until(() => system.live('order-1').some((message) => message.status === 'ready'));

    const page = await sendAsIs(url, '/console/', {});
    expect(page.status).toBe(200);
    const [, script = ''] = /<script[^>]* src="([^"]+)"/.exec(page.text) ?? [];
    expect(
      (await sendAsIs(url, script, { headers: { 'accept-encoding': 'br' } })).headers.get('content-encoding'),
    ).toBe('br');
    const orders = await sendAsIs(url, '/console/api/orders', { headers: { cookie: await logIn(url) } });
    expect(orders).toMatchObject({ status: 200, body: { orders: [{ serviceOrderId: 'order-1' }] } });

    const [kind, ...command] = image.config.Healthcheck?.Test ?? [];
    expect(kind).toBe('CMD');
    expect(await run(command, { PORT: String(port) }).exited).toBe(0);

    const began = performance.now();
    main.kill('SIGTERM');
    expect(await main.exited).toBe(0);
    expect(performance.now() - began).toBeLessThan(8_000);
    expect(await run(command, { PORT: String(port) }).exited).toBe(1);
  });
});
