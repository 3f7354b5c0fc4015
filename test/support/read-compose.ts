import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** The folder of compose.yaml. */
export const COMPOSE = fileURLToPath(new URL('../../deploy/compose/', import.meta.url));

export type Service = {
  image?: string;
  build?: string;
  user?: string;
  command?: string[];
  entrypoint?: string[];
  environment?: Record<string, string>;
  env_file?: { path: string; required: boolean }[];
  ports?: string[];
  volumes?: (string | { type: string; source: string; target: string; volume?: { nocopy: boolean } })[];
  networks?: string[] | Record<string, { aliases?: string[] }>;
  network_mode?: string;
  profiles?: string[];
  depends_on?: Record<string, { condition: string; required?: boolean }>;
  healthcheck?: { test: string[]; start_period?: string };
  restart?: string;
  read_only?: boolean;
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
  ulimits?: { nofile: number };
  tmpfs?: string[];
  extra_hosts?: string[];
  deploy?: { resources: { limits: { memory: string } } };
};
export type Compose = {
  name: string;
  services: Record<string, Service>;
  networks: Record<string, unknown>;
  volumes: Record<string, unknown>;
};

/**
 * Reads compose.yaml as Docker Compose does, with these variables.
 * @throws where a required variable is missing
 */
export function readCompose(env: Record<string, string>): Compose {
  const written: unknown = parse(readFileSync(`${COMPOSE}compose.yaml`, 'utf8'), { merge: true, maxAliasCount: -1 });
  const compose = interpolate(written, env) as Compose;
  for (const service of Object.values(compose.services)) {
    const given = Object.entries(service.environment ?? {}).map(([name, value]): [string, string] => [
      name,
      String(value as string | number),
    ]);
    service.environment = Object.fromEntries(given);
  }
  return compose;
}

function interpolate(value: unknown, env: Record<string, string>): unknown {
  if (typeof value === 'string') return replaceVariables(value, env);
  if (Array.isArray(value)) return value.map((each) => interpolate(each, env));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, interpolate(each, env)]));
}

/** https://docs.docker.com/reference/compose-file/interpolation/, as far as compose.yaml uses it. */
function replaceVariables(text: string, env: Record<string, string>): string {
  const replaced = (word: unknown): string => replaceVariables(String(word), env);
  return text.replaceAll(/\$(?:\$|\{(\w+)(?::([-?+])((?:[^{}]|\{[^{}]*\})*))?\}|(\w+))?/g, (whole, name, how, word) => {
    if (whole === '$$') return '$';
    if (typeof name !== 'string') throw new Error(`"${whole}" in compose.yaml: write \${NAME}, or $$ for a dollar`);
    const set = env[name] ?? '';
    if (how === '+') return set === '' ? '' : replaced(word);
    if (set !== '' || how === undefined) return set;
    if (how === '?') throw new Error(`required variable ${name} is missing a value: ${String(word)}`);
    return replaced(word);
  });
}

/** The variables of a file such as .env. A value may name those above it. */
export function readDotEnv(text: string): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(/^([A-Z_]+)=(.*)$/gm)) {
    env[name] = value.replaceAll(/\$(\w+)/g, (_, other: string) => env[other] ?? '');
  }
  return env;
}
