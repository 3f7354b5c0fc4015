import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

type Step = { uses?: string; run?: string };
const workflow = parse(read('.github/workflows/ci.yml')) as { jobs: Record<'test' | 'system', { steps: Step[] }> };
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);

describe('the workflow', () => {
  it("runs the README's test command, the tests of the test machinery, and what needs Debian's packages", () => {
    const [, command = ''] = /^```sh\n(.* npm test)\n```$/m.exec(read('README.md')) ?? [];
    expect(command).not.toBe('');
    expect(workflow.jobs.test.steps.slice(-2).map(({ run }) => run)).toEqual([command, 'npm run test:harness']);
    expect(workflow.jobs.system.steps.at(-1)?.run).toMatch(/&& npm run test:system$/);
  });

  it('uses actions by their commit', () => {
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
  });
});

it('.nvmrc, the pinned packages and the image have one Node', () => {
  const wanted = read('.nvmrc').trim();
  const { optionalDependencies } = JSON.parse(read('package.json')) as { optionalDependencies: Record<string, string> };
  const pinned = Object.entries(optionalDependencies).filter(([name]) => name.startsWith('node-'));
  expect(new Set(pinned.map(([, version]) => version))).toEqual(new Set([wanted]));
  for (const [, major] of read('Dockerfile').matchAll(/^FROM node:(\d+)-/gm)) expect(major).toBe(wanted.split('.')[0]);
});
