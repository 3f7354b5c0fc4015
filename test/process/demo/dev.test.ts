/** `npm run dev`, in a copy of the project: the files that change here are nobody else's. */
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  readFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sharedTmpdir, unprivilegedUser } from '../../../world/postgres/unprivileged-user.ts';
import { until } from '../../../world/processes/until.ts';
import { runDemo, type Run } from './run-demo.ts';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const NEEDED = ['src', 'packages', 'console', 'examples', 'migrations', 'tools', 'world', 'package.json'];

let folder: string;
let dev: Run | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'expediter-dev-'));
  chmodSync(folder, 0o755);
  for (const name of NEEDED) cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(async () => {
  dev?.child.kill('SIGTERM');
  await dev?.code;
  rmSync(folder, { recursive: true, force: true });
});

it(
  'npm run dev restarts the service with changed code without a gap, and leaves nothing behind',
  { timeout: 240_000 },
  async () => {
    const dir = join(folder, '.dev');
    dev = runDemo(['--watch', '--dir', dir], { dir, demo: join(folder, 'tools/demo/demo.ts') });
    const { child, code, stdout, stderr, leftBehind } = dev;
    const shown = await until(
      () => /Drive one: +curl -X POST '(\S+)'.*\n +curl '(\S+)' -d '(.*)'/.exec(stdout()) ?? undefined,
      180_000,
    );
    const [, ordersUrl = '', webhookUrl = '', payload = ''] = shown;

    const placed = await fetch(ordersUrl, { method: 'POST' });
    const { serviceOrderId } = (await placed.json()) as { serviceOrderId: string };
    await until(() => new RegExp(`${serviceOrderId} +member +live 2 +sent`).test(stdout()));
    const report = async (): Promise<unknown> => {
      const body = payload.replace('<serviceOrderId>', serviceOrderId);
      const answer = await fetch(webhookUrl, { method: 'POST', body });
      return { status: answer.status, ...((await answer.json()) as object) };
    };
    expect(await report()).toMatchObject({ status: 200, outcome: 'applied' });

    const file = join(folder, 'src/core/domain/version.ts');
    const right = readFileSync(file, 'utf8');
    appendFileSync(file, 'const x = ;\n');
    await until(() => stdout().includes('The previous version stays in use.'));
    expect(stdout()).toContain('Expression expected');
    expect(await report()).toMatchObject({ status: 200, outcome: 'duplicate' });

    writeFileSync(file, right);
    let answered = 0;
    const pids = (): string[] => [...stdout().matchAll(/process (\d+)(?:,| serves)/g)].map(([, pid = '']) => pid);
    while (pids().length < 2 || leftBehind().includes(pids()[0] ?? '')) {
      expect(await report()).toMatchObject({ status: 200, outcome: 'duplicate' });
      answered += 1;
    }
    expect(answered).toBeGreaterThan(1);
    expect(await report()).toMatchObject({ status: 200, outcome: 'duplicate' });

    child.kill('SIGTERM');
    expect(await code, stderr()).toBe(0);
    expect(leftBehind()).toEqual([]);
  },
);
