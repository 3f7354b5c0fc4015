import type { Pool } from 'pg';
import { readConfigOf } from '../config.ts';
import { FLUSH_CONNECTIONS, openDatabase } from '../database.ts';
import { askPlatform } from './ask-platform.ts';
import { examineClock } from './examine-clock.ts';
import { examineDatabase } from './examine-database.ts';
import { examineEnvironment } from './examine-environment.ts';
import { examineFollow } from './examine-follow.ts';
import { examineGrants } from './examine-grants.ts';
import { examineKeys } from './examine-keys.ts';
import { examineLocations } from './examine-locations.ts';
import { examineOidc } from './examine-oidc.ts';
import { examinePlatform } from './examine-platform.ts';
import { examinePublicUrl } from './examine-public-url.ts';
import { examinePush } from './examine-push.ts';
import { examineSpill } from './examine-spill.ts';
import { examineTopic } from './examine-topic.ts';
import { examinePart } from './examine-part.ts';
import { PARTS, reporterOf, type Finding, type Part } from './finding.ts';
import { reachDatabase } from './reach-database.ts';

const CONNECTIONS = 4;

/**
 * Examines all that a deployment needs, in parallel where possible. It changes nothing, except that it may renew an
 * access token of a POS. It ends within 30 s.
 */
export async function examine(env: NodeJS.ProcessEnv, only: readonly Part[] = PARTS): Promise<Finding[]> {
  // Loading takes 300 ms, on a busy machine seconds, and other answers would come too late meanwhile.
  if (only.includes('topic') || only.includes('spill')) await import('@google-cloud/pubsub');
  // The platform's answer serves the clock as well.
  let asked: ReturnType<typeof askPlatform> | undefined;
  const ask = (): ReturnType<typeof askPlatform> => (asked ??= askPlatform(env));
  const outside: Partial<Record<Part, () => Promise<Finding[]>>> = {
    environment: () => examineEnvironment(env),
    platform: async () => examinePlatform(await ask()),
    topic: async () => {
      const config = readConfigOf(env, 'GOOGLE_CLOUD_PROJECT', 'STATUS_TOPIC', 'PUBSUB_EMULATOR_HOST');
      const { GOOGLE_CLOUD_PROJECT: project, STATUS_TOPIC: name } = config;
      return examineTopic({ part: 'topic', variable: 'STATUS_TOPIC', project, name });
    },
    spill: () => examineSpill(env),
    push: () => examinePush(env),
    follow: () => examineFollow(env),
    'public-url': () => examinePublicUrl(env),
    operators: () => examineOidc(env),
  };
  const inside: Partial<Record<Part, (pool: Pool) => Promise<Finding[]>>> = {
    database: (pool) => examineDatabase(env, pool),
    clock: (pool) => examineClock(pool, ask()),
    keys: (pool) => examineKeys(env, pool),
    operators: (pool) => examineGrants(env, pool),
    locations: (pool) => examineLocations(env, pool),
  };
  const part = (name: Part, work: () => Promise<Finding[]>): Promise<Finding[]> =>
    examinePart(name, only.includes('environment'), work);
  const findings = await Promise.all([
    ...only.map((name) => part(name, outside[name] ?? (async () => []))),
    examineStored(PARTS.filter((name) => only.includes(name) && inside[name] !== undefined)),
  ]);
  const inOrder = (finding: Finding): number => PARTS.indexOf(finding.part);
  return findings.flat().toSorted((a, b) => inOrder(a) - inOrder(b));

  async function examineStored(wanted: readonly Part[]): Promise<Finding[]> {
    if (wanted.length === 0) return [];
    let isUsable = false;
    const found = await part('database', async () => {
      const { DATABASE_URL } = readConfigOf(env, 'DATABASE_URL');
      const { pool } = openDatabase(DATABASE_URL, FLUSH_CONNECTIONS + CONNECTIONS, () => {});
      try {
        const reached = await reachDatabase(pool, env);
        isUsable = reached.isUsable;
        if (!isUsable) return reached.findings;
        const parts = wanted.map((name) => part(name, async () => (await inside[name]?.(pool)) ?? []));
        return [...reached.findings, ...(await Promise.all(parts)).flat()];
      } finally {
        await pool.end();
      }
    });
    if (isUsable) return found;
    const rest = wanted.filter((name) => name !== 'database');
    return [...found, ...rest.map((name) => reporterOf(name).skipped('all of it', 'the database cannot be used'))];
  }
}
