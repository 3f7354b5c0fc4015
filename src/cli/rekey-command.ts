import type { Command } from 'commander';
import { readConfigOf } from '../config/config.ts';
import { rekey, type Rekeying } from '../core/locations/rekey.ts';
import { audited } from '../core/operators/audit.ts';
import { commandLineActor } from '../terminal/command-line-actor.ts';
import { examples, print, table } from '../terminal/print.ts';
import { withDatabase } from '../terminal/settings-rules.ts';

export function addRekeyCommand(program: Command): void {
  program
    .command('rekey')
    .description('encrypt every stored secret with the first key of SETTINGS_KEY. Safe to repeat')
    .option('--dry-run', 'only count, change nothing')
    .addHelpText(
      'after',
      `
To replace a key without downtime:

1. Put the new key before the old key: SETTINGS_KEY=new:…,old:…, for all processes and this command. Roll it out.
2. expediter rekey
3. When "doctor --only keys" reports nothing under the old key, and nothing waits in the spill, remove the old key from
   SETTINGS_KEY. Roll it out. Keep the old key for older backups.

Roll the new key out before step 2, because a process without it cannot read settings that are encrypted with it.
The service can run meanwhile: its own changes are not overwritten. Do not run "provider connect" at the same time.
Reads DATABASE_URL and SETTINGS_KEY. Exits 1 if a value cannot be decrypted.
${examples('expediter rekey --dry-run', 'expediter rekey --json')}`,
    )
    .action(async ({ dryRun = false }: { dryRun?: boolean }, command: Command) => {
      const env = readConfigOf(process.env, 'DATABASE_URL', 'SETTINGS_KEY');
      const done = await withDatabase(env.DATABASE_URL, (pool) => {
        const work = (): Promise<Rekeying> => rekey(pool, env.SETTINGS_KEY, dryRun);
        return dryRun ? work() : audited(pool, commandLineActor(), { action: 'rekey' }, work, inCounts);
      });
      const { missingKeys: _keys, misplaced: _rows, ...counts } = done;
      const rows = Object.entries(counts).map(([name, { rewritten, current, unreadable }]) => ({
        '': IN_WORDS[name as keyof typeof counts],
        [dryRun ? 'would be rewritten' : 'rewritten']: rewritten,
        'already current': current,
        'cannot be decrypted': unreadable,
      }));
      print(command, { dryRun, ...done }, table(rows, ''));
      const unreadable = Object.values(counts).reduce((sum, each) => sum + each.unreadable, 0);
      if (unreadable > 0) throw new Error(cannotBeDecrypted(unreadable, done));
    });
}

function inCounts({ settings, grants, webhooks }: Rekeying): string {
  return `settings ${settings.rewritten}, grants ${grants.rewritten}, webhooks ${webhooks.rewritten}`;
}

const IN_WORDS: Record<keyof Omit<Rekeying, 'missingKeys' | 'misplaced'>, string> = {
  settings: 'settings of locations and applications, secrets of signals',
  grants: 'tokens of POS systems',
  webhooks: 'webhooks',
};

const NAMED = 5;

function cannotBeDecrypted(count: number, { missingKeys, misplaced }: Rekeying): string {
  const names = missingKeys.map((id) => `"${id}"`).join(', ');
  const more = misplaced.length > NAMED ? ` and ${misplaced.length - NAMED} more` : '';
  const why = [
    ...(missingKeys.length > 0
      ? [`SETTINGS_KEY lacks key ${names}, or has other bytes under that id; add it and repeat`]
      : []),
    ...(misplaced.length > 0
      ? [`the values in ${misplaced.slice(0, NAMED).join(', ')}${more} were encrypted for another row`]
      : []),
  ];
  return `${count} cannot be decrypted: ${why.join('; ')}`;
}
