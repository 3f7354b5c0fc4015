import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { table } from '../cli/print.ts';
import { Id } from '../core/domain/order.ts';
import { eraseMember } from '../core/retention/erase-members.ts';
import { operation, type Operation } from './operation.ts';

const erase = operation({
  id: 'eraseMember',
  role: 'admin',
  of: 'all',
  // The audit gets no id of the member, since it would outlive the erased data.
  does: 'erase member',
  body: z.strictObject({ memberId: Id, dryRun: z.boolean().default(false) }),
  async run({ pool, note }, { memberId, dryRun }) {
    const done = await eraseMember(pool, memberId, dryRun);
    note(`erased ${done.erased.length}, left ${done.left.length}`);
    return done;
  },
  print({ erased, left }, { dryRun }) {
    if (erased.length + left.length === 0) {
      return 'No order with stored contents names this member. If you expected one, check the id.';
    }
    return table([
      ...erased.map((order) => ({ order, '': dryRun ? 'would be erased' : 'erased' })),
      ...left.map(({ serviceOrderId, why }) => ({ order: serviceOrderId, '': `left: ${why}` })),
    ]);
  },
  fails: ({ left }, { dryRun }) => left.length > 0 && !dryRun && 'Not everything could be erased. Try again later.',
  command: {
    name: 'member erase',
    about: 'erase all data of one member now, whatever the retention; the orders stay as tombstones',
    argument: {
      flags: '<memberId>',
      about: "the member's id on the ordering platform, or - to read it from standard input",
      field: 'memberId',
    },
    options: [{ flags: '--dry-run', about: 'only list the orders' }],
    more: `
This erases, of each order of the member, its contents, the bodies and headers of its webhooks and their replays, the
reasons that came with them, and what the POS answered about it. An order that is at its POS and has not ended is erased as
well, and its statuses go on. An order that is still on its way to the POS keeps its contents, which it needs to be placed:
it is listed, the others are erased, and the exit code is 1. Try again when it is sent or has ended.
Erasing twice does no harm. docs/privacy.md says what cannot be found by the member's id.
Other users of a machine see its arguments, and a shell stores them: read the id from standard input to avoid that.
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
