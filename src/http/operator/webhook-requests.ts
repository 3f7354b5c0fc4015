/** Requests about webhooks. */
import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { WEBHOOK_OUTCOMES } from '../../core/domain/webhook.ts';
import { When, oneOf, paging, whether } from './request-fields.ts';

const WebhookId = z
  .uuid({ version: 'v7', error: 'is not the id of a webhook, such as 019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33' })
  .meta({ examples: ['019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33'] });
export const WebhookParams = z.strictObject({ webhookId: WebhookId });

const webhookFilter = {
  outcome: oneOf(WEBHOOK_OUTCOMES, 'What became of it.').optional(),
  location: Id.optional().meta({ description: 'At this location.' }),
  integration: Id.optional().meta({ description: 'That it came through.' }),
  since: When.optional().describe('Received then or later.'),
  until: When.optional().describe('Received before.'),
};
export const WebhooksQuery = z.strictObject({
  ...webhookFilter,
  oldToken: whether('Those that were refused for an old token, or with `false` all others.').optional(),
  order: Id.optional().meta({ description: "Those in this order's history." }),
  ...paging(WebhookId),
});

export const WebhookQuery = z.strictObject({
  contents: whether(
    'With `false` nothing of what it said: no `headers`, no `body`, no `reason` in its events. Only who reads those is in the audit.',
  ).optional(),
});

export const Replay = z
  .preprocess(
    // A request without a body has no options.
    (body) => body ?? {},
    z.strictObject({
      dryRun: z.boolean().default(false).meta({ description: 'Keep nothing of it: say what would become of it now.' }),
    }),
  )
  .meta({ examples: [{ dryRun: true }] });

const REPLAY_MAX = 1_000;
export const ReplayMany = z
  .strictObject({
    ...webhookFilter,
    oldToken: z.boolean().default(false).meta({
      description: 'Those that were refused for an old token, and no others. Without it they are left out.',
    }),
    again: z.boolean().default(false).meta({
      description: 'Also those of which a replay has made something else already.',
    }),
    dryRun: z.boolean().default(false),
    limit: z.int().min(1).max(REPLAY_MAX).default(REPLAY_MAX),
    cursor: WebhookId.exactOptional().meta({ description: 'The `next` of the answer before.' }),
  })
  .refine((filter) => filter.outcome !== undefined || filter.since !== undefined || filter.oldToken, {
    error: 'says not which: outcome, or since, or oldToken is required',
  })
  .meta({ examples: [{ outcome: 'dropped', since: '2027-01-31T18:00:00Z', location: 'club-1', dryRun: true }] });
