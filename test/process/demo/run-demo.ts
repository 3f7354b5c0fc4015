import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { endWithUs } from '../../../world/processes/end-with-us.ts';

const DEMO = fileURLToPath(new URL('../../../tools/demo/demo.ts', import.meta.url));

export type Run = {
  child: ChildProcess;
  stdout: () => string;
  stderr: () => string;
  code: Promise<number | null>;
  /** Whether anything it started still runs. */
  leftBehind: () => string[];
};

/**
 * @param about.dir where its data is
 * @param about.demo its file, where it is not this project's
 */
export function runDemo(args: string[], about: { dir: string; env?: Record<string, string>; demo?: string }): Run {
  const { dir, env = {}, demo = DEMO } = about;
  const mark = `DEMO_TEST=${randomUUID()}`;
  const [name = '', value = ''] = mark.split('=');
  const child = spawn(process.execPath, [demo, ...args], {
    env: { ...process.env, DATABASE_URL: '', PUBSUB_EMULATOR_HOST: '', [name]: value, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithUs(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    code: once(child, 'close').then(([code]) => code as number | null),
    leftBehind: () => running(mark, dir),
  };
}

/** The service carries our mark in its environment, Postgres has the directory in its command line. */
function running(mark: string, dir: string): string[] {
  if (!existsSync('/proc/self/environ')) return [];
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return commandLine.includes(`-D ${dir}/`) || readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark);
    } catch {
      return false;
    }
  });
}
