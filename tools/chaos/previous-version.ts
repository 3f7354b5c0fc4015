import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runToEnd } from '../../world/processes/run-program.ts';

/** A version of the service, ready to run. */
export type Version = {
  /** Its tag; `1.0.0` for the baseline. */
  name: string;
  /** The folder with its files and its packages. */
  folder: string;
  remove(): Promise<void>;
};

const OURS = fileURLToPath(new URL('../..', import.meta.url));
/** The schema of the first release. */
const BASELINE = 'migrations/0001-baseline.sql';
const TAG = /^v\d+\.\d+\.\d+$/;

/**
 * Finds the last release before HEAD: the newest tag `v…` of an earlier commit, or the commit that finished the baseline.
 * @param git runs git with these arguments @returns its standard output, which may throw
 */
export function findPrevious(git: (...args: string[]) => string = runGit): { name: string; commit: string } {
  const lines = (...args: string[]): string[] =>
    git(...args)
      .split('\n')
      .filter((line) => line !== '');
  let isShallow;
  try {
    [isShallow] = lines('rev-parse', '--is-shallow-repository');
  } catch (error) {
    throw new Error('the previous version is in the history of git, and this is no repository', { cause: error });
  }
  if (isShallow !== 'false') {
    throw new Error('the history does not reach to the previous version: git fetch --unshallow --tags');
  }
  const own = new Set(lines('tag', '--points-at', 'HEAD'));
  const earlier = lines('tag', '--merged', 'HEAD', '--sort=-version:refname').filter(
    (tag) => TAG.test(tag) && !own.has(tag),
  );
  const [tag] = earlier;
  const [commit] =
    tag === undefined ? lines('log', '-1', '--format=%H', '--', BASELINE) : lines('rev-parse', `${tag}^{commit}`);
  if (commit === undefined) throw new Error(`no commit of the history has ${BASELINE}`);
  return { name: tag?.slice(1) ?? '1.0.0', commit };
}

/** @returns the first of these files that a version has: some have moved since. @param files newest place first */
export function fileIn(folder: string, ...files: readonly string[]): string {
  const file = files.map((each) => join(folder, each)).find((each) => existsSync(each));
  if (file === undefined) throw new Error(`${folder} has none of ${files.join(', ')}`);
  return file;
}

/** Puts a commit's files into a temporary folder, without packages. */
export async function unpackVersion({ name, commit }: { name: string; commit: string }): Promise<Version> {
  const folder = await mkdtemp(join(tmpdir(), `expediter-${name}-`));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    execFileSync('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', commit, folder], { cwd: OURS });
  } catch (error) {
    await remove();
    throw error;
  }
  return { name, folder, remove };
}

/** Puts a commit's files into a temporary folder, and installs its packages. */
export async function buildVersion(about: { name: string; commit: string }): Promise<Version> {
  const version = await unpackVersion(about);
  const { folder } = version;
  try {
    const [theirs, ours] = await Promise.all(
      [folder, OURS].map((each) => readFile(join(each, 'package-lock.json'), 'utf8')),
    );
    if (theirs === ours) await symlink(join(OURS, 'node_modules'), join(folder, 'node_modules'));
    else {
      const words = ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
      execFileSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    }
  } catch (error) {
    await version.remove();
    throw error;
  }
  return version;
}

/** Runs a command of its command line. @returns its standard output @throws if it fails */
export async function runPrevious(
  { name, folder }: Version,
  env: Record<string, string>,
  args: readonly string[],
  input = '',
): Promise<string> {
  const { code, out, error } = await runToEnd(join(folder, 'src/cli.ts'), env, args, input);
  if (code !== 0) throw new Error(`"${args.slice(0, 2).join(' ')}" of version ${name} failed: ${error}`);
  return out;
}

function runGit(...args: string[]): string {
  return execFileSync('git', args, { cwd: OURS, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
