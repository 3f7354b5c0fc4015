import type { Command } from 'commander';
import type { Pool } from 'pg';
import { z } from 'zod';
import { readConfigOf } from '../server/config.ts';
import { describeIssues } from '../core/domain/order.ts';
import { audited, type Act } from '../core/operators/audit.ts';
import { givenInWords, recordAtEach, rightInWords } from '../core/operators/given-right.ts';
import { ROLES, type Right } from '../core/operators/operator.ts';
import {
  NewOperatorGrant,
  addOperatorGrant,
  listOperatorGrants,
  removeOperatorGrant,
} from '../core/operators/operator-grants.ts';
import {
  NewOperatorToken,
  issueOperatorToken,
  listOperatorTokens,
  revokeOperatorToken,
} from '../core/operators/operator-tokens.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples, facts, print, readTime, table } from './print.ts';
import { NotFound, WrongInput } from './failures.ts';
import { addOperatorSessionCommands } from './operator-session-commands.ts';
import { withDatabase } from './settings-rules.ts';

type Given = { role: string[]; locations?: string[] };

export function addOperatorCommands(program: Command): void {
  const operator = program
    .command('operator')
    .description('who may what: named tokens, the roles of people who sign in, and where they are signed in')
    .addHelpText(
      'after',
      `
Roles: viewer (in each) reads what is not member data; operator retries, resolves, cancels, replays and pauses;
member-data reads what a member ordered or wrote; admin says who may what. None includes another.
${examples(
  'expediter operator token issue --name nightly-report --role viewer --expires 90d',
  'expediter operator grant add --email anna@example.com --role operator,member-data --locations club-1',
)}`,
    );
  addTokens(operator);
  addGrants(operator);
  addOperatorSessionCommands(operator);
}

function addTokens(operator: Command): void {
  const token = operator
    .command('token')
    .description('tokens with a name, for programs, and for people where there is no OIDC')
    .addHelpText(
      'after',
      examples('expediter operator token issue --name anna --role admin', 'expediter operator token list'),
    );

  withRight(
    token
      .command('issue')
      .description('make a named token, shown this once: for the operator API as Bearer, and to sign in at the console')
      .requiredOption('--name <name>', 'whose it is, as the audit names them; of no other valid token'),
  )
    .option(
      '--expires <when>',
      'after a while (12h, 30m, 45s), at a time (2027-01-31T00:00:00Z), or never; by default after 90d',
      (text) => (text === 'never' ? text : readTime(text, 'future')),
    )
    .addHelpText(
      'after',
      examples(
        'expediter operator token issue --name nightly-report --role viewer --expires 30d --json',
        'expediter operator token issue --name anna --role operator --role member-data --locations club-1,club-2',
      ),
    )
    .action(
      async ({ name, expires, ...given }: Given & { name: string; expires?: Date | 'never' }, command: Command) => {
        const wanted = read(NewOperatorToken, { name, ...rightOf(given) });
        const issued = await change({ did: 'issue token' }, (pool) =>
          issueOperatorToken(pool, { ...wanted, expiresAt: expires === 'never' ? null : expires }),
        );
        const { token: secret, tokenId, expiresAt } = issued;
        print(command, issued, facts({ token: secret, tokenId, name, may: rightInWords(issued), expires: expiresAt }));
      },
    );

  token
    .command('list')
    .description(
      'named tokens, what they may, whether they are valid, and when each was used last; never a token itself',
    )
    .addHelpText('after', examples('expediter operator token list', 'expediter operator token list --json'))
    .action(async (_options: object, command: Command) => {
      const tokens = await withOperators(listOperatorTokens);
      print(
        command,
        tokens,
        table(
          tokens.map((each) => ({
            token: each.tokenId,
            name: each.name,
            may: rightInWords(each),
            state: each.state,
            created: each.createdAt,
            expires: each.expiresAt,
            'last used': each.lastUsedAt,
          })),
          'no named tokens yet; see: expediter operator token issue --help',
        ),
      );
    });

  token
    .command('revoke')
    .description('shut a named token out, with the sessions that it opened, within five seconds')
    .argument('<tokenId>', 'see: expediter operator token list')
    .addHelpText('after', examples('expediter operator token revoke 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11'))
    .action(async (tokenId: string, _options: object, command: Command) => {
      const revoked = await change({ did: 'revoke token', subject: idOf(tokenId) }, (pool) =>
        revokeOperatorToken(pool, tokenId),
      );
      print(command, revoked, `${tokenId} is revoked; it opens nothing from five seconds on`);
    });
}

function addGrants(operator: Command): void {
  const grant = operator
    .command('grant')
    .description('the roles of people who sign in by OIDC: of an address, or of all of a group')
    .addHelpText(
      'after',
      examples(
        'expediter operator grant add --group kitchen-managers --role operator',
        'expediter operator grant list',
      ),
    );

  withRight(
    grant
      .command('add')
      .description('give roles to an address, or to all of a group, within five seconds')
      .option('--email <address>', 'of whom signs in, as the issuer has verified it')
      .option('--group <name>', 'all of a group, as the issuer names it'),
  )
    .addHelpText(
      'after',
      examples(
        'expediter operator grant add --email anna@example.com --role viewer --locations club-1',
        'expediter operator grant add --group kitchen-managers --role operator --role member-data --json',
      ),
    )
    .action(async ({ email, group, ...given }: Given & { email?: string; group?: string }, command: Command) => {
      const wanted = read(NewOperatorGrant, { email, group, ...rightOf(given) });
      const added = await change({ did: 'give roles' }, (pool) => addOperatorGrant(pool, wanted));
      print(
        command,
        added,
        facts({ grantId: added.grantId, to: added.email ?? added.group, may: rightInWords(added) }),
      );
    });

  grant
    .command('list')
    .description('who has which roles, and where')
    .addHelpText('after', examples('expediter operator grant list', 'expediter operator grant list --json'))
    .action(async (_options: object, command: Command) => {
      const grants = await withOperators(listOperatorGrants);
      print(
        command,
        grants,
        table(
          grants.map(({ grantId, email, group, createdAt, ...right }) => ({
            grant: grantId,
            email,
            group,
            may: rightInWords(right),
            created: createdAt,
          })),
          'no grants yet; see: expediter operator grant add --help',
        ),
      );
    });

  grant
    .command('remove')
    .description('take roles back, within five seconds')
    .argument('<grantId>', 'see: expediter operator grant list')
    .addHelpText('after', examples('expediter operator grant remove 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c13'))
    .action(async (grantId: string, _options: object, command: Command) => {
      const removed = await change({ did: 'take roles', subject: idOf(grantId) }, (pool) =>
        removeOperatorGrant(pool, grantId),
      );
      print(command, removed, `${givenInWords(removed)}: taken back, from five seconds on`);
    });
}

/** Adds the options for what may be done, and where. */
function withRight(command: Command): Command {
  const list = (text: string, before: string[] = []): string[] => [
    ...before,
    ...text.split(',').map((each) => each.trim()),
  ];
  return command
    .requiredOption('--role <role>', `of ${ROLES.join(', ')}; several with commas between, or again`, list)
    .option('--locations <ids>', 'there alone, with commas between; without it, at all locations', list);
}

function rightOf({ role, locations }: Given): { roles: string[]; locations: string[] | null } {
  return { roles: role, locations: locations ?? null };
}

function read<Schema extends z.ZodType>(schema: Schema, given: unknown): z.infer<Schema> {
  const { data, error } = schema.safeParse(given);
  if (error !== undefined) throw new WrongInput(describeIssues(error));
  return data;
}

/** An argument that is an id. It may be the token itself, which neither a log nor the audit should hold. */
function idOf(text: string): string {
  if (z.uuid().safeParse(text).success) return text;
  throw noSuch();
}

const noSuch = (): NotFound =>
  new NotFound('nothing has this id; see: expediter operator token list, expediter operator grant list');

async function withOperators<Result>(work: (pool: Pool) => Promise<Result>): Promise<Result> {
  return withDatabase(readConfigOf(process.env, 'DATABASE_URL').DATABASE_URL, work);
}

/** Changes who may what, as an act of whoever runs the command. */
async function change<Done extends Right>(
  act: Act,
  work: (pool: Pool) => Promise<Done | { refused: string } | undefined>,
): Promise<Done> {
  const done = await withOperators((pool) =>
    audited(
      pool,
      commandLineActor(),
      act,
      async () => {
        const result = await work(pool);
        if (result !== undefined && !('refused' in result)) await recordAtEach(pool, commandLineActor(), act, result);
        return result;
      },
      (result) => (result === undefined || 'refused' in result ? undefined : givenInWords(result)),
    ),
  );
  if (done === undefined) throw noSuch();
  if ('refused' in done) throw new WrongInput(done.refused);
  return done;
}
