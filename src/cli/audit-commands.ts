import { Option, type Command } from 'commander';
import type { Pool } from 'pg';
import { readConfigOf } from '../config.ts';
import { ASKED_OUTCOMES, readAudit, type AuditFilter, type ListedAct } from '../core/operators/read-audit.ts';
import { actsTable } from './acts-table.ts';
import { examples } from './examples.ts';
import { WrongInput } from './failures.ts';
import { print } from './print.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX, readLimit } from './read-limit.ts';
import { PAST, readPast } from './read-time.ts';
import { withDatabase } from './with-database.ts';

type Options = Omit<AuditFilter, 'locations' | 'serviceOrderId'> & {
  location?: string;
  order?: string;
  limit: number;
  after?: string;
};

export function addAuditCommands(program: Command): void {
  const audit = program
    .command('audit')
    .description('what operators did, looked into and were refused')
    .addHelpText('after', examples('expediter audit list --since 1d'));

  audit
    .command('list')
    .description('acts, newest first: who, from where, what, about what, and how it ended')
    .option('--actor <name>', 'by whom: their name as it stands there, or their id')
    .option('--did <what>', 'what was done, such as replay, resolve or "be refused"')
    .option('--location <id>', 'at this location')
    .option('--order <id>', 'about this order; replays of its webhooks stand in `order show`')
    .addOption(new Option('--outcome <outcome>', 'how it ended').choices(ASKED_OUTCOMES))
    .option('--since <when>', `begun since then: ${PAST}`, readPast)
    .option('--until <when>', `begun before: ${PAST}`, readPast)
    .option('--limit <count>', `at most so many, up to ${LIST_LIMIT_MAX}`, readLimit, LIST_LIMIT)
    .option('--after <auditId>', 'go on behind this one, the last of the list before')
    .addHelpText(
      'after',
      examples(
        'expediter audit list --did replay --since 1d',
        'expediter audit list --actor ada@example.com --location club-1 --json',
        'expediter audit list --outcome refused --since 2027-01-31T18:00:00Z',
      ),
    )
    .action(async (options: Options, command: Command) => {
      if (options.after !== undefined && !/^\d{1,18}$/.test(options.after)) {
        throw new WrongInput('--after takes the auditId of an act, as --json has it');
      }
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const acts = await withDatabase(DATABASE_URL, (pool) => list(pool, options));
      const shown = actsTable(acts, 'no acts match');
      const last = acts.length < options.limit ? undefined : acts.at(-1);
      print(command, acts, last === undefined ? shown : `${shown}\n\nthere may be more: --after ${last.auditId}`);
    });
}

async function list(pool: Pool, { location, order, limit, after, ...filter }: Options): Promise<ListedAct[]> {
  const asked = { ...filter, serviceOrderId: order, ...(location !== undefined && { locations: [location] }) };
  const found: ListedAct[] = [];
  let before = after;
  do {
    const page = await readAudit(pool, asked, { before, limit: limit - found.length });
    found.push(...page.acts);
    before = page.next ?? undefined;
  } while (before !== undefined && found.length < limit);
  return found;
}
