import type { Command } from 'commander';
import { z } from 'zod';
import { readConfigOf } from '../server/config.ts';
import { audited } from '../core/operators/audit.ts';
import { endSession, listSessions } from '../core/operators/operator-sessions.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples, print, table } from './print.ts';
import { NotFound } from './failures.ts';
import { withDatabase } from './settings-rules.ts';

/** @param operator the group of commands about operators */
export function addOperatorSessionCommands(operator: Command): void {
  const session = operator
    .command('session')
    .description('the browsers that are signed in at the console')
    .addHelpText(
      'after',
      examples(
        'expediter operator session list',
        'expediter operator session revoke 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11',
      ),
    );

  session
    .command('list')
    .description('who is signed in, from where, since when, and when they were seen last')
    .addHelpText('after', examples('expediter operator session list', 'expediter operator session list --json'))
    .action(async (_options: object, command: Command) => {
      const { DATABASE_URL, OPERATOR_TOKEN } = readConfigOf(process.env, 'DATABASE_URL', 'OPERATOR_TOKEN');
      const sessions = await withDatabase(DATABASE_URL, (pool) =>
        listSessions(pool, { operatorToken: OPERATOR_TOKEN }),
      );
      print(
        command,
        sessions,
        table(
          sessions.map((each) => ({
            session: each.sessionId,
            name: each.name,
            kind: each.kind,
            from: each.source,
            browser: each.userAgent,
            'signed in': each.signedInAt,
            'last seen': each.lastSeenAt,
            expires: each.expiresAt,
          })),
          'nobody is signed in',
        ),
      );
    });

  session
    .command('revoke')
    .description('shut a browser out, within five seconds; whoever it is may sign in again')
    .argument('<sessionId>', 'see: expediter operator session list')
    .addHelpText('after', examples('expediter operator session revoke 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11'))
    .action(async (sessionId: string, _options: object, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const noSuchSession = new NotFound('no session has this id; see: expediter operator session list');
      if (!z.uuid().safeParse(sessionId).success) throw noSuchSession;
      const act = { did: 'revoke session', subject: sessionId };
      const found = await withDatabase(DATABASE_URL, (pool) =>
        audited(pool, commandLineActor(), act, () => endSession(pool, sessionId)),
      );
      if (!found) throw noSuchSession;
      print(command, { sessionId, revoked: true }, `${sessionId} is over; it opens nothing from five seconds on`);
    });
}
