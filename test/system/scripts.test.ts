import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { needsTool } from './needs-tool.ts';
import { ROOT } from '../support/read-project.ts';

it("shellcheck finds nothing in the workflows' scripts", () => {
  const shellcheck = needsTool('shellcheck', 'shellcheck');
  const folder = join(ROOT, '.github/workflows');
  type Workflow = { jobs: Record<string, { steps?: { run?: string }[] }> };
  const runs = readdirSync(folder).flatMap((file) =>
    Object.values((parse(readFileSync(join(folder, file), 'utf8')) as Workflow).jobs)
      .flatMap(({ steps = [] }) => steps.flatMap(({ run }) => run ?? []))
      .map((run) => ({ file, run })),
  );
  expect(runs.length).toBeGreaterThan(20);
  for (const { file, run } of runs) {
    // As GitHub runs it. A value of the workflow comes by a variable, never into the text.
    expect(run, file).not.toContain('${{');
    const { stdout } = spawnSync(shellcheck, ['--shell=bash', '-'], { input: run, encoding: 'utf8' });
    expect(stdout, `${file}: ${run}`).toBe('');
  }
});

it('shellcheck finds nothing in the scripts', () => {
  const shellcheck = needsTool('shellcheck', 'shellcheck');
  const scripts = readdirSync(join(ROOT, 'deploy'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.sh'))
    .map((file) => join(ROOT, 'deploy', file));
  expect(scripts.length).toBeGreaterThan(0);
  expect(execFileSync(shellcheck, [...scripts, join(ROOT, '.ci/run')], { encoding: 'utf8' })).toBe('');
});
