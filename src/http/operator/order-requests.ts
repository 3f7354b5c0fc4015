/** Requests about orders. */
import { z } from 'zod';
import { MEMBER_STATES, STATUSES } from '../../core/domain/lifecycle.ts';
import { Id } from '../../core/domain/order.ts';
import { PLACEMENT_STATES } from '../../core/domain/placement.ts';
import { When, oneOf, paging, whether } from './request-fields.ts';

export const OrderParams = z.strictObject({
  serviceOrderId: Id.meta({
    description: 'Its id on the ordering platform, percent-encoded.',
    examples: ['order-4711'],
  }),
});

export const OrdersQuery = z.strictObject({
  location: Id.optional().meta({ description: 'At this location.' }),
  integration: Id.optional().meta({ description: 'That the order was last sent through.' }),
  state: oneOf(PLACEMENT_STATES, 'Of the placement.').optional(),
  needs: oneOf(['operator'], 'In doubt until a person says whether the ticket is there.').optional(),
  open: whether('Whether it has not ended yet.').optional(),
  status: oneOf(STATUSES, 'As the POS reported last.').optional(),
  memberState: oneOf(MEMBER_STATES, 'As the member sees it.').optional(),
  since: When.optional().describe('Signalled then or later.'),
  until: When.optional().describe('Signalled before.'),
  ...paging(Id),
});

export const OrderQuery = z.strictObject({
  ordered: whether('With what was ordered and what it costs, without its member.').optional(),
  contents: whether('With the order as it was fetched: member data. Who read it is in the audit.').optional(),
});

export const Resolve = z
  .discriminatedUnion('there', [
    z.strictObject({
      there: z.literal(true),
      providerOrderId: Id.exactOptional().meta({ description: "The ticket's id at the POS, where you know it." }),
    }),
    z.strictObject({ there: z.literal(false) }),
  ])
  .meta({ examples: [{ there: true, providerOrderId: '8F2K' }, { there: false }] });

export const ConcludeCancel = z
  .strictObject({ cancelled: z.boolean().meta({ description: 'False if the restaurant makes it all the same.' }) })
  .meta({ examples: [{ cancelled: true }] });
