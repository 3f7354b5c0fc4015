import type { Command } from 'commander';
import { readConfigOf } from '../server/config.ts';
import { examples, print } from './print.ts';
import { withDatabase } from './settings-rules.ts';

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('bring the schema up to this version; safe to repeat')
    .addHelpText(
      'after',
      `
Reads DATABASE_URL, and OWNER_DATABASE_URL where the service's role is not to own its tables: then the second one's role
makes them, and gives the first one's what the service needs, each time. A role that is not there yet is made, with the
password of DATABASE_URL. Everything is in the schema "expediter"; both roles get it as their search_path in this database.
${examples('expediter migrate', 'OWNER_DATABASE_URL=postgres://expediter_owner@db.internal:5432/expediter?sslmode=verify-full expediter migrate')}`,
    )
    .action(async (_options: object, command: Command) => {
      const { DATABASE_URL, OWNER_DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL', 'OWNER_DATABASE_URL');
      // Loaded here, since no other command needs it.
      const { migrate } = await import('../database/migrate.ts');
      const migrated =
        OWNER_DATABASE_URL === undefined
          ? await migrate(DATABASE_URL)
          : await migrate(OWNER_DATABASE_URL, { serviceUrl: DATABASE_URL });
      // A newer schema has nothing to migrate, but is not usable either; nor is one that the service may not read.
      await withDatabase(DATABASE_URL, async () => {});
      print(command, { migrated }, migrated.map((name) => `migrated ${name}`).join('\n') || 'the schema is up to date');
    });
}
