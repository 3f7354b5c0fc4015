/** The bundle of production: what it looks for outside of itself is where it looks. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { compileService } from '../../tools/bench/stage/compile-service.ts';
import { version } from '../../src/core/domain/version.ts';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { runMain, type MainProcess } from '../../world/processes/run-main.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { PROJECT, startSystem, type System } from '../../world/system/start-system.ts';
import { loadsIn, watchLoads } from './watch-loads.ts';
import { until } from '../../world/processes/until.ts';

const MAPPER = `
  import { toMinorUnits } from 'expediter-platform';
  export const query = 'query Q($id: ID!) { order(id: $id) { serviceOrderId } }';
  export const toCanonicalOrder = (data) => toMinorUnits(data.order.serviceOrderId, 'EUR', 'total');`;

const folder = mkdtempSync(join(tmpdir(), 'expediter-mapper-'));
let system: System;
let main: MainProcess;
let mainFile: string;
let cli: string;

beforeAll(async () => {
  const [file, started] = await Promise.all([compileService(), startSystem({ processes: 0 })]);
  system = started;
  mainFile = file;
  cli = join(dirname(file), 'cli.js');
  mkdirSync(join(dirname(file), 'console'));
  writeFileSync(join(dirname(file), 'console/index.html'), 'the pass');
  writeFileSync(join(folder, 'mapper.mjs'), MAPPER);
  const ours = { OPERATOR_TOKEN, OPERATOR_PORT: '0', ORDER_MODULE: join(folder, 'mapper.mjs') };
  main = await runMain({ ...system.env, ...ours }, undefined, file);
  system.urls.push(main.url);
});
afterAll(async () => {
  main?.child.kill('SIGTERM');
  await main?.exited;
  await system?.stop();
  rmSync(folder, { recursive: true });
});

it('the bundle contains its version, the console and the migrations', async () => {
  const get = (path: string): Promise<Response> =>
    fetch(main.operatorUrl + path, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
  expect(await (await get('/openapi.json')).json()).toMatchObject({ info: { version } });
  expect(await (await get('/console/')).text()).toBe('the pass');
  const { databaseUrl: DATABASE_URL } = system;
  const migrated = await runProgram(process.execPath, [cli, 'migrate', '--json'], { DATABASE_URL });
  expect(migrated).toEqual({ code: 0, out: '{"migrated":[]}\n', error: '' });
});

it('an error in a mapper is stored with the line of the mapper, not with a line of the service', async () => {
  const { serviceOrderId } = await system.placeOrder();
  const placement = await until(async () => {
    const row = await system.placement(serviceOrderId);
    return row?.['state'] === 'held' && row;
  });
  expect(placement['cause']).toMatchObject({ errorCode: 'amount_unreadable', field: 'total', at: 'mapper.mjs:4' });
});

it('its files have only ASCII, and neither comments on code nor the classes of Google that nothing uses', () => {
  const folder = dirname(mainFile);
  const files = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const texts = files.map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));
  expect(texts.length).toBeGreaterThan(100);
  const namesOf = (pattern: RegExp): string[] => texts.flatMap(({ name, text }) => (pattern.test(text) ? [name] : []));
  expect(namesOf(/[^\0-\x7f]/)).toEqual([]);
  expect(namesOf(/^\s*\/\*\*\n(?:\s*\* .*\n)*?\s*\* @(?:param|returns) /m)).toEqual([]);
  expect(namesOf(/protobuf\.roots\[?["'._]/)).toEqual([]);
});

it('the command of the image that fills its compile cache loads every file', () => {
  const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8').replaceAll('\\\n', '');
  const [, command = ''] = /setpriv --reuid=1000 (node [^&]+) 2> \/dev\/null &&/.exec(dockerfile) ?? [];
  const cache = join(folder, 'compile-cache');
  const { status, stderr } = spawnSync('sh', ['-c', command], {
    cwd: join(dirname(mainFile), '..'),
    env: { PATH: `${dirname(process.execPath)}:${process.env['PATH']}`, NODE_COMPILE_CACHE: cache },
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/^The environment is wrong/) as string,
  });
  const started = ['cli.js', 'platform-kit.js'];
  const files = readdirSync(dirname(mainFile)).filter((name) => name.endsWith('.js') && !started.includes(name));
  const kept = readdirSync(cache, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(kept.length).toBeGreaterThanOrEqual(files.length);
});

it('publishes to Pub/Sub and reads the spill, and loads no file of its client from node_modules', async () => {
  const other = await startSystem({ processes: 0, env: { SPILL_TOPIC: 'spill' } });
  onTestFinished(() => other.stop());
  const run = await runMain({ ...other.env, NODE_OPTIONS: watchLoads }, undefined, mainFile);
  onTestFinished(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
  });
  other.urls.push(run.url);
  const { serviceOrderId } = await other.placeOrder();
  await until(async () => other.live(serviceOrderId).length > 0);
  const client = new PubSub({ projectId: PROJECT });
  await client.topic('spill').publishMessage({ data: Buffer.from('not sealed') });
  await client.close();
  await until(async () => run.output().includes('JWEInvalid'));
  expect(loadsIn(run.output()).filter((url) => /node_modules.*(google|grpc|protobuf)/.test(url))).toEqual([]);
});
