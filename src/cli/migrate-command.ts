import type { Command } from 'commander';
import { readConfigOf } from '../server/config.ts';
import { examples, print } from './print.ts';
import { withDatabase } from './settings-rules.ts';

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('bring the schema to this version; safe to repeat')
    .addHelpText(
      'after',
      `
Reads DATABASE_URL. Set OWNER_DATABASE_URL if the service's role must not own its tables: its role then makes the tables,
and each run grants the role of DATABASE_URL what the service needs. A missing role is created, with the password of
DATABASE_URL. Everything is in the schema "expediter"; both roles get it as their search_path in this database.
${examples('expediter migrate', 'OWNER_DATABASE_URL=postgres://expediter_owner@db.internal:5432/expediter?sslmode=verify-full expediter migrate')}`,
    )
    .action(async (_options: object, command: Command) => {
      const { DATABASE_URL, OWNER_DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL', 'OWNER_DATABASE_URL');
      // Imported here, since no other command needs it.
      const { migrate } = await import('../database/migrate.ts');
      const migrated =
        OWNER_DATABASE_URL === undefined
          ? await migrate(DATABASE_URL)
          : await migrate(OWNER_DATABASE_URL, { serviceUrl: DATABASE_URL });
      // A newer schema needs no migration, but is not usable. The same holds for a schema that the service may not read.
      await withDatabase(DATABASE_URL, async () => {});
      print(command, { migrated }, migrated.map((name) => `migrated ${name}`).join('\n') || 'the schema is up to date');
    });
}
