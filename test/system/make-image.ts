import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { promisify } from 'node:util';
import { needsTool } from './needs-tool.ts';
import { read, ROOT } from '../support/read-project.ts';

const TAG = 'localhost/expediter:system-test';
const LOG_LIMIT = 64 * 2 ** 20;
/** As the Dockerfile's USER and WORKDIR have it; the image's configuration is held to them. */
const USER = '1000:1000';
const HOME = '/app';

export type ImageConfig = {
  User: string;
  WorkingDir: string;
  Env: string[];
  Cmd: string[];
  Labels: Record<string, string>;
  ExposedPorts: Record<string, object>;
  Healthcheck: { Test: string[] } | undefined;
};

export type Image = {
  config: ImageConfig;
  /** Where its files can be read. */
  root: string;
  /** What it takes on a disk above its base image, in bytes. */
  sizeAboveBase: number;
  /** Runs a command in it as process 1, as its user, with a root that is read-only and a writable /tmp. */
  run(command: readonly string[], env: Record<string, string>): Contained;
  remove(): Promise<void>;
};

export type Contained = {
  output: () => string;
  /** Sent to process 1 itself, as an engine does. */
  kill(signal: NodeJS.Signals): void;
  exited: Promise<number | string>;
};

/**
 * Builds the Dockerfile with buildah, which needs no engine, and opens the result. `IMAGE_ENGINE` has the command where
 * it needs options, such as `buildah --root /var/tmp/images`; `IMAGE_BASE` the base where no registry can be reached. Base
 * images come from their registry unless they are there.
 */
export async function makeImage(): Promise<Image> {
  const [program = '', ...options] = (process.env['IMAGE_ENGINE'] ?? 'buildah').split(' ');
  needsTool(program, 'buildah');
  needsTool('unshare', 'util-linux');
  if (process.getuid?.() !== 0) throw new Error('the image can only be mounted and entered by root: run this as root');
  const engine = async (...words: string[]): Promise<string> => {
    const ended = promisify(execFile)(program, [...options, ...words], { maxBuffer: LOG_LIMIT });
    const { stdout } = await ended.catch((error: Error & { stdout?: string }) => {
      // The compiler's own words are there.
      throw new Error(`${error.message}\n${error.stdout?.slice(-4_000) ?? ''}`, { cause: error });
    });
    return stdout.trim();
  };

  const pinned = /^ARG NODE_IMAGE=(\S+)$/m.exec(read('Dockerfile'))?.[1] ?? '';
  const base = process.env['IMAGE_BASE'] ?? pinned;
  const about = [...'--format docker --isolation chroot --network host --build-arg'.split(' '), `NODE_IMAGE=${base}`];
  await engine('bud', ...about, '--tag', TAG, ROOT);
  const [container, ofBase] = [await engine('from', '--pull-never', TAG), await engine('from', '--pull-never', base)];
  const [root, rootOfBase] = [await engine('mount', container), await engine('mount', ofBase)];
  const sizeOf = async (folder: string): Promise<number> =>
    Number.parseInt((await promisify(execFile)('du', ['-sx', '--block-size=1', folder])).stdout, 10);
  const { Docker } = JSON.parse(await engine('inspect', '--type', 'image', TAG)) as { Docker: { config: ImageConfig } };

  return {
    config: Docker.config,
    root,
    sizeAboveBase: (await sizeOf(root)) - (await sizeOf(rootOfBase)),
    run: (command, env) => contain(root, Docker.config, command, env),
    async remove() {
      await engine('rm', container, ofBase);
    },
  };
}

/** `$1` is the image's root; the rest is what to run in it. Each step hands its process id on, so that it stays 1. */
const ENTER = `
  set -e
  root=$1; shift
  mount --bind "$root" "$root"
  mount -o remount,bind,ro "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/tmp"
  exec chroot --userspec=${USER} "$root" "$@"
`;

function contain(
  root: string,
  config: ImageConfig,
  command: readonly string[],
  env: Record<string, string>,
): Contained {
  const variables = [...config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  const inside = ['/usr/bin/env', '-i', '-C', HOME, ...variables, ...command];
  const apart = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
  const child = spawn('unshare', [...apart, '/bin/sh', '-c', ENTER, 'enter', root, ...inside], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = new Promise<number | string>((done) => {
    child.once('close', (code, signal) => done(code ?? signal ?? 'unknown'));
  });
  return {
    output: () => output,
    kill: (signal) => process.kill(firstProcess(child), signal),
    exited,
  };
}

/** The id that process 1 of the container has outside. */
function firstProcess(child: ChildProcess): number {
  const pid = Number.parseInt(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'), 10);
  // Not us: its process ids are its own.
  if (readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync('/proc/self/ns/pid')) throw new Error('not in a container');
  return pid;
}
