import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { readConfigOf } from '../server/config.ts';
import { eraseMember, type ErasedMember } from '../core/retention/erase-members.ts';
import { Id, describeIssues } from '../core/domain/order.ts';
import { audited } from '../core/operators/audit.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples, print, table } from './print.ts';
import { WrongInput } from './failures.ts';
import { withDatabase } from './settings-rules.ts';

export function addMemberCommands(program: Command): void {
  const member = program
    .command('member')
    .description("what is kept of the platform's members")
    .addHelpText('after', examples('expediter member erase member-42', 'expediter member erase - < member-id.txt'));

  member
    .command('erase')
    .description('erase now all that tells of one member, whatever the retention; the orders stay as tombstones')
    .argument('<memberId>', "the member's id on the ordering platform, or - to read it from standard input")
    .option('--dry-run', 'only say which orders it would be')
    .addHelpText(
      'after',
      `
Of each order of the member go its contents, the bodies and headers of its webhooks and of their replays, the reasons
that came with them, and what the POS answered about it. An order that is at its POS and has not ended is erased as
well, and its statuses go on. One that is still on its way there keeps its contents, which it cannot be placed without:
it is named, the others are erased, and the exit code is 1; try again when it is sent or has ended.
Erasing twice does no harm. What cannot be found by the member's id: see docs/privacy.md.
Other users of a machine see its arguments, and a shell keeps them: read the id from standard input to avoid that.
The member's id is printed nowhere. Reads DATABASE_URL.
${examples('expediter member erase member-42 --dry-run', 'expediter member erase - --json < member-id.txt')}`,
    )
    .action(async (given: string, { dryRun = false }: { dryRun?: boolean }, command: Command) => {
      const memberId = Id.safeParse(given === '-' ? (await text(process.stdin)).trim() : given);
      if (!memberId.success) throw new WrongInput(`the member's id: ${describeIssues(memberId.error)}`);
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const done = await withDatabase(DATABASE_URL, (pool) => {
        const work = (): Promise<ErasedMember> => eraseMember(pool, memberId.data, dryRun);
        // Without whose: an id of the member would outlive what is erased.
        return dryRun ? work() : audited(pool, commandLineActor(), { did: 'erase member' }, work, inCounts);
      });
      print(command, { dryRun, ...done }, inWords(done, dryRun));
      if (done.left.length > 0 && !dryRun) throw new Error('not everything could be erased: try again later');
    });
}

function inCounts({ erased, left }: ErasedMember): string {
  return `erased ${erased.length}, left ${left.length}`;
}

function inWords({ erased, left }: ErasedMember, dryRun: boolean): string {
  if (erased.length + left.length === 0) {
    return 'nothing: no order whose contents are kept names this member. If there should be one, look at the id';
  }
  const rows = [
    ...erased.map((order) => ({ order, '': dryRun ? 'would be erased' : 'erased' })),
    ...left.map(({ serviceOrderId, why }) => ({ order: serviceOrderId, '': `left: ${why}` })),
  ];
  return table(rows, '');
}
