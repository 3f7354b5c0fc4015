import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram, type Ended } from '../../world/processes/run-program.ts';
import { needsTool } from './needs-tool.ts';

const STAND_INS = fileURLToPath(new URL('stand-ins/', import.meta.url));
/** Debian 13 has the Postgres of compose.yaml; the Dockerfile of the service needs Debian 12. */
const DEBIAN = { others: 'trixie', node: 'bookworm' };
const NODE = 'expediter-stand-in:node';
const PULL_LIMIT_S = '300';
/** What compose.yaml asks for. A sandbox may not raise the limit of its engine. */
const OPEN_FILES = 65_536;

/** What the commands of Docker read. The project has another name than an installation on the same machine. */
export const DOCKER_ENV: Record<string, string> = { COMPOSE_PROJECT_NAME: 'expediter-system-test' };
for (const name of ['DOCKER_HOST', 'DOCKER_CONFIG', 'DOCKER_CONTEXT', 'HOME']) {
  const value = process.env[name];
  if (value !== undefined) DOCKER_ENV[name] = value;
}

/** @throws if the command fails */
export async function docker(args: readonly string[], cwd?: string): Promise<string> {
  const ended = await runProgram('docker', args, DOCKER_ENV, cwd === undefined ? {} : { cwd });
  if (ended.code !== 0) throw new Error(`docker ${args.join(' ')}: ${ended.error}${ended.out.slice(-4_000)}`);
  return ended.out.trim();
}

/** @throws if there is no Docker engine of this machine, or no Compose: a system test fails without it, and never skips */
export async function needsEngine(): Promise<void> {
  needsTool('docker', 'docker.io docker-compose');
  if (process.getuid?.() !== 0) throw new Error('the disk of Postgres can only be limited by root: run this as root');
  const engine = await tried(['info', '--format', '{{.ServerVersion}}']);
  if (engine.code !== 0) {
    throw new Error(`no Docker engine answers: start one, or set DOCKER_HOST to its socket. ${engine.error}`);
  }
  const compose = await tried(['compose', 'version', '--short']);
  if (compose.code !== 0) throw new Error(`Docker Compose is missing; on Debian: apt-get install docker-compose`);
  process.stdout.write(`Docker ${engine.out.trim()}, Compose ${compose.out.trim()}\n`);
}

const tried = (args: readonly string[]): Promise<Ended> => runProgram('docker', args, DOCKER_ENV);

/**
 * Pulls the images. If a registry does not answer, all become stand-ins, made of Debian's packages.
 * @returns what compose.override.yaml needs here
 */
export async function provideImages(names: readonly string[]): Promise<object> {
  const override: { services: Record<string, object> } = { services: {} };
  for (const name of names) {
    const pulled = await runProgram('timeout', [PULL_LIMIT_S, 'docker', 'pull', '--quiet', name], DOCKER_ENV);
    if (pulled.code === 0) continue;
    process.stdout.write(`${name} cannot be pulled, so all images are stand-ins: ${pulled.error}`);
    await buildStandIns(names);
    const build = { network: 'host', args: { NODE_IMAGE: NODE } };
    override.services['migrate'] = { build };
    break;
  }
  const limited = ['run', '--rm', '--ulimit', `nofile=${OPEN_FILES}`, '--entrypoint', 'true', names[0] ?? ''];
  if ((await tried(limited)).code === 0) return override;
  for (const service of ['caddy', 'expediter-1', 'expediter-2']) {
    override.services[service] = { ulimits: { nofile: OPEN_FILES / 8 } };
  }
  return override;
}

async function buildStandIns(names: readonly string[]): Promise<void> {
  for (const suite of Object.values(DEBIAN)) await importDebian(suite);
  const folder = mkdtempSync(join(tmpdir(), 'stand-ins-'));
  try {
    cpSync(STAND_INS, folder, { recursive: true });
    // …/npm/bin/npm-cli.js
    const npm = realpathSync(needsTool('npm', 'npm'));
    cpSync(join(npm, '../..'), join(folder, 'npm'), { recursive: true });
    cpSync(process.execPath, join(folder, 'node'));
    const certificates = '/etc/ssl/certs/ca-certificates.crt';
    writeFileSync(join(folder, 'certificates.crt'), readFileSync(certificates));
    const registry = (await runProgram(npm, ['config', 'get', 'registry'], {})).out;
    writeFileSync(join(folder, 'npmrc'), `cafile=${certificates}\nregistry=${registry}`);
    const build = (target: string, suite: string, name: string): Promise<string> =>
      docker(
        `build --quiet --network host --build-arg DEBIAN=${debian(suite)} --target ${target} --tag ${name}`
          .split(' ')
          .concat(folder),
      );
    for (const name of names) await build(/([a-z]+):/.exec(name)?.[1] ?? '', DEBIAN.others, name);
    await build('node', DEBIAN.node, NODE);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const debian = (suite: string): string => `expediter-stand-in:debian-${suite}`;

async function importDebian(suite: string): Promise<void> {
  if ((await tried(['image', 'inspect', debian(suite)])).code === 0) return;
  needsTool('debootstrap', 'debootstrap');
  const folder = mkdtempSync(join(tmpdir(), 'debian-'));
  try {
    const [root, file] = [join(folder, 'root'), join(folder, 'root.tar')];
    const packages = '--include=ca-certificates,libatomic1';
    for (const [program = '', ...args] of [
      ['debootstrap', '--variant=minbase', packages, suite, root],
      ['tar', '--directory', root, '--numeric-owner', '--create', '--file', file, '.'],
    ]) {
      const { code, out, error } = await runProgram(program, args, {});
      if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${out.slice(-2_000)}${error}`);
    }
    await docker(['import', file, debian(suite)]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
