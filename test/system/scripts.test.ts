import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { needsTool } from './needs-tool.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

it('shellcheck has nothing to say about the scripts', () => {
  const shellcheck = needsTool('shellcheck', 'shellcheck');
  const scripts = readdirSync(join(PROJECT, 'deploy'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.sh'))
    .map((file) => join(PROJECT, 'deploy', file));
  expect(scripts.length).toBeGreaterThan(0);
  expect(execFileSync(shellcheck, [...scripts, join(PROJECT, '.ci/run')], { encoding: 'utf8' })).toBe('');
});
