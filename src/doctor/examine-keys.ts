import type { Pool } from 'pg';
import { readConfigOf } from '../config.ts';
import { keysInUse } from '../core/locations/keys-in-use.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('keys');
const CHECK = 'SETTINGS_KEY';

/** Finds the keys of SETTINGS_KEY that are still needed. */
export async function examineKeys(env: NodeJS.ProcessEnv, pool: Pool): Promise<Finding[]> {
  const { SETTINGS_KEY } = readConfigOf(env, 'SETTINGS_KEY');
  const [first = '', ...older] = SETTINGS_KEY.keys();
  const used = await keysInUse(pool);
  const textsUnder = (id: string): number =>
    used.filter((each) => each.keyId === id).reduce((sum, each) => sum + each.count, 0);
  const missing = [...new Set(used.map((each) => each.keyId))].filter((id) => !SETTINGS_KEY.has(id));
  const unbound = used.filter((each) => !each.isBound && SETTINGS_KEY.has(each.keyId));
  const open = unbound.reduce((sum, each) => sum + each.count, 0);
  return [
    ok(CHECK, `texts under the first key, "${first}": ${textsUnder(first)}`),
    ...older.map((id) =>
      textsUnder(id) === 0
        ? warning(CHECK, `nothing is under the older key "${id}"`, 'take it out, once every process has the first one')
        : warning(CHECK, `texts under the older key "${id}": ${textsUnder(id)}`, 'expediter rekey, then take it out'),
    ),
    ...(open === 0
      ? []
      : [
          warning(
            CHECK,
            `texts of an earlier version, which open in any row: ${open}`,
            'expediter rekey binds each to its row; a new key shuts out copies of them, in backups for one',
          ),
        ]),
    ...missing.map((id) =>
      failed(CHECK, `texts under "${id}", which is not there: ${textsUnder(id)}`, 'add the key, then: expediter rekey'),
    ),
  ];
}
