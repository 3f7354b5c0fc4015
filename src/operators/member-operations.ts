import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { table } from '../terminal/print.ts';
import { Id } from '../core/domain/order.ts';
import { recordAtOrders } from '../core/operators/audit.ts';
import { eraseMember } from '../core/retention/erase-members.ts';
import { operation, type Operation } from './operation.ts';
import { flag } from './requests.ts';

const erase = operation({
  id: 'eraseMember',
  // The member's id is not recorded, because the audit is stored for longer than the erased data.
  // The answer says which orders are the member's, also in a dry run.
  access: { role: 'admin', of: 'all', does: 'erase member', reveals: { action: 'look up member', when: () => true } },
  api: {
    route: 'POST /members/erase',
    summary: 'Erase all data of one member now',
    description:
      'The orders stay, without member data. An order on its way to the POS is not erased, because its contents are ' +
      'needed to place it: it is in `left`. Try again when it is sent or has ended. The audit has each erasure and each dry ' +
      'run, also at each location that has such orders, and does not name the member.',
    output: z.object({
      erased: z.array(z.string()).meta({ description: 'The ids of the orders that were erased.' }),
      left: z.array(z.object({ serviceOrderId: z.string(), reason: z.string() })),
    }),
    answer: 'The orders of the member.',
  },
  body: z.strictObject({
    memberId: Id.meta({ description: "The member's id on the platform." }),
    dryRun: flag('Only list the orders.'),
  }),
  async run({ pool, by, note }, { memberId, dryRun }) {
    const done = await eraseMember(pool, memberId, dryRun);
    const ids = [...done.erased, ...done.left.map(({ serviceOrderId }) => serviceOrderId)];
    await recordAtOrders(pool, by, dryRun ? 'look up member' : 'erase member', ids);
    note(`erased ${done.erased.length}, left ${done.left.length}`);
    return done;
  },
  print({ erased, left }, { dryRun }) {
    if (erased.length + left.length === 0) {
      return 'No order with stored contents names this member. If you expected one, check the id.';
    }
    return table([
      ...erased.map((order) => ({ order, '': dryRun ? 'would be erased' : 'erased' })),
      ...left.map(({ serviceOrderId, reason }) => ({ order: serviceOrderId, '': `left: ${reason}` })),
    ]);
  },
  fails: ({ left }, { dryRun }) => left.length > 0 && !dryRun && 'Not everything could be erased. Try again later.',
  command: {
    name: 'member erase',
    about: 'erase all data of one member now, before the retention ends. The orders stay, without member data',
    argument: {
      flags: '<memberId>',
      about: "the member's id on the platform, or - to read it from standard input",
      field: 'memberId',
    },
    options: [{ flags: '--dry-run', about: 'only list the orders' }],
    more: `
For each order of the member, this erases the contents of the order, the bodies and headers of its webhooks and their
replays, the reasons in them, and the answers of the POS about the order. An order that is at its POS is erased even if
it has not ended, and still gets its statuses. An order that is on its way to the POS is not erased, because its
contents are needed to place it. Such orders are listed, and the exit code is 1. Try again when they are sent or have
ended. docs/privacy.md says which data cannot be found by the member's id.
Other users of the machine can see command arguments, and a shell stores them. To avoid that, use - and standard input.
The member's id is never printed. Reads DATABASE_URL.
`,
    examples: ['expediter member erase member-42 --dry-run', 'expediter member erase - --json < member-id.txt'],
    read: async ({ memberId, ...typed }) => ({
      ...typed,
      memberId: memberId === '-' ? (await text(process.stdin)).trim() : memberId,
    }),
  },
});

export const MEMBER_OPERATIONS: readonly Operation[] = [erase];
