import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { API_KEY, servePlatform } from '../../examples/platform-mapper/serve-platform.ts';
import { until } from '../../world/processes/until.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

it('`platform check --watch` checks again when the module changes, and ends with Ctrl-C', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'watch-'));
  await cp(at('examples/platform-mapper'), folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  const feast = await servePlatform();
  const module = join(folder, 'map-order.ts');
  const child = spawn(process.execPath, [at('src/cli.ts'), 'platform', 'check', 'B-1001', '--watch'], {
    env: { ...process.env, ORDER_API_URL: feast.url, ORDER_API_TOKEN: API_KEY, ORDER_MODULE: module },
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await feast.stop();
    await rm(folder, { recursive: true });
  });
  let [out, told] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()));

  await until(() => /B-1001 +can be placed/.test(out));
  await appendFile(module, '\nthrow new Error("broken");\n');
  await until(() => told.includes('map-order.ts has changed') && told.includes('broken'));
  const ended = once(child, 'close');
  child.kill('SIGINT');
  expect((await ended)[0]).toBe(0);
});
