import type { Command } from 'commander';
import pg from 'pg';
import { daysPast } from '../core/retention/past-orders.ts';
import { printError } from '../observe/terminal-text.ts';
import { readConfigOf } from '../config/config.ts';
import { examples, print } from '../terminal/print.ts';
import { withDatabase } from '../terminal/settings-rules.ts';

const KEPT_DAYS = ['AUDIT_RETENTION_DAYS', 'WEBHOOK_RETENTION_DAYS', 'PII_RETENTION_DAYS', 'HISTORY_DAYS'] as const;

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('migrate the database schema to this version. Safe to repeat')
    .addHelpText(
      'after',
      `
Reads DATABASE_URL. If the service's role must not own the tables, set OWNER_DATABASE_URL: its role then creates the
tables, and each run grants the role of DATABASE_URL what the service needs. A missing role of DATABASE_URL is created
with the password given there. All tables are in the schema "expediter", which becomes the search_path of both roles.
DATABASE_URL need not be reachable then.
AUDIT_RETENTION_DAYS, WEBHOOK_RETENTION_DAYS, PII_RETENTION_DAYS and HISTORY_DAYS must be the same as the service's, with
the same defaults: the role of DATABASE_URL cannot delete the audit, webhooks and past orders before they are over.
${examples('expediter migrate', 'OWNER_DATABASE_URL=postgres://expediter_owner@db.internal:5432/expediter?sslmode=verify-full expediter migrate')}`,
    )
    .action(async (_options: object, command: Command) => {
      const config = readConfigOf(process.env, 'DATABASE_URL', 'OWNER_DATABASE_URL', ...KEPT_DAYS);
      const { DATABASE_URL, OWNER_DATABASE_URL } = config;
      const { AUDIT_RETENTION_DAYS: audit, WEBHOOK_RETENTION_DAYS: webhooks } = config;
      const keptDays = { audit, webhooks, past_orders: daysPast(config) };
      // Imported here, because no other command needs it.
      const { migrate } = await import('../database/migrate.ts');
      const migrated =
        OWNER_DATABASE_URL === undefined
          ? await migrate(DATABASE_URL)
          : await migrate(OWNER_DATABASE_URL, { serviceUrl: DATABASE_URL, keptDays });
      // Fails if the service cannot use the schema: it is of a newer version, or the service's role may not read it.
      await withDatabase(DATABASE_URL, async () => {}).catch((error: Error) => {
        if (OWNER_DATABASE_URL === undefined || !isUnreachable(error)) throw error;
        printError(`warning: it is not known whether the service can use the schema: ${error.message}`);
      });
      print(command, { migrated }, migrated.map((name) => `migrated ${name}`).join('\n') || 'the schema is up to date');
    });
}

/** True if nobody answered. An error of Postgres, or of a pooler, is an answer. */
function isUnreachable({ cause }: Error): boolean {
  return cause instanceof Error && !(cause instanceof pg.DatabaseError);
}
