import type { Command } from 'commander';
import { readConfigOf } from '../config.ts';
import { examples } from './examples.ts';
import { print } from './print.ts';
import { withDatabase } from './with-database.ts';

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('bring the schema up to this version; safe to repeat. Reads DATABASE_URL')
    .addHelpText('after', examples('DATABASE_URL=postgres://expediter@db.internal:5432/expediter expediter migrate'))
    .action(async (_options: object, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      // Loaded here, since no other command needs it.
      const { migrate } = await import('../migrate.ts');
      const migrated = await migrate(DATABASE_URL);
      // A newer schema has nothing to migrate, but is not usable either.
      await withDatabase(DATABASE_URL, async () => {});
      print(command, { migrated }, migrated.map((name) => `migrated ${name}`).join('\n') || 'the schema is up to date');
    });
}
