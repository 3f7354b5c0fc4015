import { mkdirSync, mkdtempSync, rmSync, renameSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { onChange } from '../../src/cli/on-change.ts';
import { until } from '../../world/processes/until.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'on-change-'));
  mkdirSync(join(folder, 'deep'));
  write('deep/app.ts');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(file: string): void {
  writeFileSync(join(folder, file), '');
}

it('onChange acts once for files that are saved together, and again for a later save', async () => {
  const actions: string[] = [];
  const end = onChange(folder, async (file) => void actions.push(file));
  write('deep/app.ts');
  write('deep/new.ts');
  await until(() => actions.length === 1);
  // As editors save: another file takes the name.
  write('deep/app.ts~');
  renameSync(join(folder, 'deep/app.ts~'), join(folder, 'deep/app.ts'));
  await until(() => actions.length === 2);
  await end();
  // Node reports the two files in either order.
  expect(actions).toEqual([expect.stringMatching(/^deep\/(new|app)\.ts$/), 'deep/app.ts']);
});

it('onChange ignores the temporary files of editors, and a file to which the action is printed', async () => {
  const actions: string[] = [];
  const end = onChange(folder, async (file) => void actions.push(file));
  const told = Promise.withResolvers<void>();
  const watcher = watch(join(folder, 'deep'), (_event, name) => void (name === '4913' && told.resolve()));
  for (const file of ['.app.ts.swp', 'app.ts~', '.#app.ts', 'check.log', 'out.txt', '4913']) write(`deep/${file}`);
  await told.promise;
  watcher.close();
  // It waits for an action that has begun.
  await end();
  expect(actions).toEqual([]);
});

it('onChange acts once more after an action if files changed during the action', async () => {
  let acting = 0;
  let actions = 0;
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>();
  const end = onChange(folder, async () => {
    actions += 1;
    acting += 1;
    expect(acting).toBe(1);
    await allowed;
    acting -= 1;
  });
  write('deep/app.ts');
  await until(() => actions === 1);
  // Another one that watches the folder is told a little later.
  let isTold = false;
  const endOther = onChange(folder, async () => void (isTold = true));
  for (const file of ['one.ts', 'two.ts']) write(file);
  await until(() => isTold);
  await endOther();
  expect(actions).toBe(1);
  allow();
  await until(() => actions === 2);
  write('three.ts');
  await end();
  expect({ acting, actions }).toEqual({ acting: 0, actions: 2 });
});
