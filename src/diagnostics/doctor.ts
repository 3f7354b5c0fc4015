import type { Pool } from 'pg';
import { WrongEnvironment, readConfig, readConfigOf } from '../config/config.ts';
import { findWeakVariables } from '../config/find-weak-variables.ts';
import { CONNECT_MS } from '../database/check-schema.ts';
import { WRITER_CONNECTIONS, openDatabase } from '../database/open-database.ts';
import { loadOrderModule } from '../platform/load-order-module.ts';
import { loadProviders } from '../providers/index.ts';
import { PARTS, failed, ok, skipped, warning, type Check, type Finding, type Part } from './check.ts';
import { examineFollow, examineGrants, examineOidc, examinePublicUrl, examinePush } from './examine-access.ts';
import { examineDatabase, reachDatabase } from './examine-database.ts';
import { examineKeys, examineLocations } from './examine-locations.ts';
import { queryPlatform, examineClock, examinePlatform, type PlatformAnswers } from './examine-platform.ts';
import { examineContacts, examineNotify } from './examine-notify.ts';
import { examineHealth, examineWays } from './examine-live.ts';
import { examineSpill, examineTopics } from './examine-pubsub.ts';

const CONNECTIONS = 4;

/**
 * Examines everything that a deployment needs, in parallel if possible. It changes nothing, except that it may renew an
 * access token of a POS. It ends within 30 s.
 * @param isForwarded whether this process got a request of a proxy although TRUSTED_PROXIES is unset
 */
export async function examine(
  env: NodeJS.ProcessEnv,
  only: readonly Part[] = PARTS,
  isForwarded = false,
): Promise<Finding[]> {
  // Imported before the checks start: the import takes 300 ms, or seconds on a busy machine, and would delay them.
  if (only.includes('topic') || only.includes('spill')) await import('@google-cloud/pubsub');
  // The platform is asked once, because the check of the clock uses its answer too.
  let answered: Promise<PlatformAnswers> | undefined;
  const queryOnce = (): Promise<PlatformAnswers> => (answered ??= queryPlatform(env));
  const outside: Partial<Record<Part, () => Promise<Check[]>>> = {
    environment: () => examineEnvironment(env),
    platform: async () => examinePlatform(await queryOnce()),
    live: () => examineWays(env),
    topic: () => examineTopics(env),
    spill: () => examineSpill(env),
    push: () => examinePush(env),
    follow: () => examineFollow(env),
    'public-url': () => examinePublicUrl(env, isForwarded),
    notify: () => examineNotify(env),
    operators: () => examineOidc(env),
  };
  const inside: Partial<Record<Part, (pool: Pool) => Promise<Check[]>>> = {
    database: (pool) => examineDatabase(env, pool),
    clock: (pool) => examineClock(pool, queryOnce()),
    keys: (pool) => examineKeys(env, pool),
    live: (pool) => examineHealth(env, pool),
    notify: (pool) => examineContacts(env, pool),
    operators: (pool) => examineGrants(env, pool),
    locations: (pool) => examineLocations(env, pool),
  };
  const run = (part: Part, work: () => Promise<Check[]>): Promise<Finding[]> =>
    runPart(part, only.includes('environment'), work);
  const findings = await Promise.all([
    ...only.map((part) => run(part, outside[part] ?? (async () => []))),
    examineStored(PARTS.filter((part) => only.includes(part) && inside[part] !== undefined)),
  ]);
  const inOrder = (finding: Finding): number => PARTS.indexOf(finding.part);
  return findings.flat().toSorted((a, b) => inOrder(a) - inOrder(b));

  async function examineStored(wanted: readonly Part[]): Promise<Finding[]> {
    if (wanted.length === 0) return [];
    let pool: Pool | undefined;
    try {
      const reached = await run('database', async () => {
        const { DATABASE_URL } = readConfigOf(env, 'DATABASE_URL');
        ({ pool } = openDatabase(DATABASE_URL, WRITER_CONNECTIONS + CONNECTIONS, () => {}, CONNECT_MS));
        return reachDatabase(pool, env);
      });
      const isUsable = reached.every(({ state }) => state === 'ok' || state === 'warning');
      const unusable = [skipped('all of it', 'the database cannot be used')];
      const stored = wanted.map((part) =>
        run(part, async () => {
          if (isUsable && pool !== undefined) return (await inside[part]?.(pool)) ?? [];
          return part === 'database' ? [] : unusable;
        }),
      );
      return [...reached, ...(await Promise.all(stored)).flat()];
    } finally {
      await pool?.end();
    }
  }
}

/**
 * Runs the checks of one part. A wrong variable or an unexpected error ends only this part.
 * @param environmentToo true if the part `environment` is examined too. It then reports the wrong variables
 */
async function runPart(part: Part, environmentToo: boolean, work: () => Promise<Check[]>): Promise<Finding[]> {
  const checks = await work().catch((error: unknown) => {
    if (error instanceof WrongEnvironment) {
      const wrong = variablesIn(error);
      if (part === 'environment' || !environmentToo) {
        return wrong.map(({ name, problem, example }) =>
          failed(name, problem, example === undefined ? 'remove it' : `set it, for example: ${example}`),
        );
      }
      return [skipped('all of it', `${wrong.map(({ name }) => name).join(', ')}: see environment`)];
    }
    // The error's message is not printed, because it may quote a secret.
    const { name, code } = error as { name?: string; code?: unknown };
    const found = `unexpected ${[name ?? typeof error, ...(typeof code === 'string' ? [code] : [])].join(' ')}`;
    return [failed('all of it', found, `run it again: expediter doctor --only ${part}`)];
  });
  return checks.map((check) => ({ part, ...check }));
}

/** @returns the wrong variables; a removed one has no example */
function variablesIn({ message }: WrongEnvironment): { name: string; problem: string; example: string | undefined }[] {
  return message.split('\n').flatMap((line) => {
    const [, name, problem, example] = /^ {2}([A-Z_]+): (.*?)\. (?:Example: (.*)|Remove it)$/.exec(line) ?? [];
    return name === undefined || problem === undefined ? [] : [{ name, problem, example }];
  });
}

/** @throws WrongEnvironment that names every wrong variable */
async function examineEnvironment(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const config = readConfig(env);
  const { ORDER_MODULE, PROVIDER_MODULES } = config;
  return [
    ok('variables', 'all are right'),
    ...findWeakVariables(config).map(({ name, found, toDo }) => warning(name, found, toDo)),
    await loadOrderModule(config).then(
      () => ok('ORDER_MODULE', ORDER_MODULE ?? 'unset: the default query'),
      (error: Error) => failed('ORDER_MODULE', error.message, 'name a module with a query or fetchOrder'),
    ),
    await loadProviders(PROVIDER_MODULES).then(
      (registry) => ok('PROVIDER_MODULES', [...registry.keys()].join(', ')),
      (error: Error) => failed('PROVIDER_MODULES', error.message, 'install the module, or remove it'),
    ),
  ];
}
