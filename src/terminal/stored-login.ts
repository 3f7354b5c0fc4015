import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { isPlainElsewhere } from '../core/egress/allowed-hosts.ts';
import { NotDone } from '../core/operators/not-done.ts';

/** A service whose operator API the commands use. */
export type Service = { url: string; token: string };

const Login = z.object({ url: z.url(), token: z.string() });

/** The file of `expediter login`. Only its owner can read it. */
function loginFile(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'expediter', 'login.json');
}

/**
 * Returns the service that commands use: that of EXPEDITER_URL, with EXPEDITER_TOKEN or the token of a login there. Without
 * EXPEDITER_URL, a DATABASE_URL is used before the service of a login.
 * @returns undefined if commands use DATABASE_URL
 */
export async function serviceOf(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const { EXPEDITER_URL: url, EXPEDITER_TOKEN: token, DATABASE_URL: database } = env;
  if (url === undefined || url === '') return database === undefined ? readLogin(env) : undefined;
  const service = readServiceUrl(url);
  if (token !== undefined && token !== '') return { url: service, token };
  const login = await readLogin(env);
  if (login?.url === service) return login;
  throw new NotDone(400, `You are not signed in at ${service}. Run: expediter login ${service}`);
}

/** @throws NotDone if a token would be sent in clear over a network */
export function readServiceUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search + url.hash + url.username !== '') {
    throw new NotDone(400, 'The URL of the service must be one such as https://operators.example.com.');
  }
  if (isPlainElsewhere(url.href)) {
    throw new NotDone(400, 'The URL of the service must begin with https://, because a token is sent to it.');
  }
  return url.href.replace(/\/$/, '');
}

async function readLogin(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const json = await readFile(loginFile(env), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new NotDone(400, `${loginFile(env)} cannot be read (${error.code}).`);
  });
  if (json === undefined) return undefined;
  try {
    return Login.parse(JSON.parse(json));
  } catch {
    throw new NotDone(400, `${loginFile(env)} is damaged. Run expediter login again.`);
  }
}

/** @returns the name of the file */
export async function storeLogin(env: NodeJS.ProcessEnv, service: Service): Promise<string> {
  const file = loginFile(env);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // A new file, because the mode of an existing one would stay.
  await rm(file, { force: true });
  await writeFile(file, `${JSON.stringify(service)}\n`, { mode: 0o600 });
  return file;
}

export async function forgetLogin(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const login = await readLogin(env);
  await rm(loginFile(env), { force: true });
  return login;
}
