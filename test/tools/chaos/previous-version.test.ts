import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { findPrevious } from '../../../tools/chaos/previous-version.ts';

let folder: string;
const gitIn =
  (cwd: string) =>
  (...args: string[]): string => {
    const person = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false'];
    return execFileSync('git', [...person, ...args], { cwd, encoding: 'utf8', stdio: 'pipe' });
  };
const git = (...args: string[]): string => gitIn(folder)(...args);
/** @returns the commit */
function commit(file: string, text: string): string {
  writeFileSync(join(folder, file), text);
  git('add', '.');
  git('commit', '-q', '-m', text);
  return git('rev-parse', 'HEAD').trim();
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'history-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'migrations'));
  git('init', '-q');
});

it('without a release, the previous version is the commit that finished the baseline', () => {
  commit('migrations/0001-baseline.sql', 'begun');
  const finished = commit('migrations/0001-baseline.sql', 'finished');
  commit('other', 'other');
  expect(findPrevious(git)).toEqual({ name: '1.0.0', commit: finished });
});

it('it is the newest release before this commit, by its number, and no candidate, other branch or release of this commit', () => {
  commit('migrations/0001-baseline.sql', 'baseline');
  git('tag', 'v1.9.0');
  const newest = commit('a', 'a');
  git('tag', '-m', 'with a note', 'v1.10.0');
  commit('b', 'b');
  git('tag', 'v1.11.0-rc.1');
  git('checkout', '-q', '-b', 'other');
  commit('c', 'c');
  git('tag', 'v3.0.0');
  git('checkout', '-q', '-');
  commit('d', 'd');
  git('tag', 'v2.0.0');
  expect(findPrevious(git)).toEqual({ name: '1.10.0', commit: newest });
  commit('e', 'e');
  expect(findPrevious(git)).toMatchObject({ name: '2.0.0' });
});

it('a clone without the history says what to do', () => {
  commit('migrations/0001-baseline.sql', 'baseline');
  commit('a', 'a');
  const clone = join(folder, 'clone');
  git('clone', '-q', '--depth', '1', `file://${folder}`, clone);
  expect(() => findPrevious(gitIn(clone))).toThrow('git fetch --unshallow --tags');
  const none = mkdtempSync(join(tmpdir(), 'none-'));
  onTestFinished(() => rmSync(none, { recursive: true }));
  expect(() => findPrevious(gitIn(none))).toThrow('this is no repository');
});
