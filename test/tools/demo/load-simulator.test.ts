import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadSimulator } from '../../../tools/demo/load-simulator.ts';
import { SIMULATORS } from '../../../world/pos/index.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'simulators-'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('--pos', () => {
  it('finds built-in simulators by their names', async () => {
    expect(await loadSimulator('toast')).toBe(SIMULATORS.toast);
  });

  it.each([
    ['one', 'export const name = 1; export function start() {}', undefined],
    ['none', 'export const name = 1', 'exports no function'],
    ['several', 'export function start() {} export function stop() {}', 'exports several functions'],
    ['broken', 'not {', 'cannot be loaded'],
  ])(
    'uses the only function that a module exports, or fails if there is not exactly one: %s',
    async (name, text, problem) => {
      const path = join(folder, `${name}.mjs`);
      await writeFile(path, text);
      const found = await loadSimulator(path).catch((error: unknown) => error as Error);
      if (problem === undefined) expect(found).toHaveProperty('name', 'start');
      else expect(found).toMatchObject({ message: expect.stringContaining(`--pos: ${path} ${problem}`) as string });
    },
  );
});
