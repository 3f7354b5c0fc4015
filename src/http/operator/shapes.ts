/** What operators send and get, for the routes and for the OpenAPI document. */
import { z } from 'zod';
import { WEBHOOK_OUTCOMES, EVENT_OUTCOMES } from '../../core/domain/webhook.ts';
import { PLACEMENT_STATES } from '../../core/domain/placement.ts';
import { STATUSES } from '../../core/domain/lifecycle.ts';
import { Instant, MEMBER_STATES } from '../../core/domain/live-message.ts';
import { HAPPENINGS } from '../../core/orders/order-timeline.ts';
import { Id, Time } from '../../core/domain/order.ts';
import { TOKEN_STATES } from '../../core/locations/webhook-tokens.ts';

export const LIMIT = { default: 50, max: 200 };

const MemberState = z.enum(MEMBER_STATES).meta({ id: 'MemberState', description: 'What the member sees.' });
export const Status = z.enum(STATUSES).meta({ id: 'Status', description: 'What the POS reported.' });
const PlacementState = z.enum(PLACEMENT_STATES).meta({
  id: 'PlacementState',
  description:
    'waiting: tried, or to be tried. held: nothing works until one of us mends something. in_doubt: the POS may have it. ' +
    'sent: the ticket is at the POS. failed: final, and the member was told.',
});
const Outcome = z.enum(WEBHOOK_OUTCOMES).meta({ id: 'Outcome', description: 'What became of a webhook.' });
const Fulfillment = z.enum(['pickup', 'delivery']);

export const Failure = z
  .object({
    error: z.string(),
    problems: z
      .array(z.object({ field: z.string(), problem: z.string() }))
      .exactOptional()
      .meta({ description: 'What is wrong with the request, field by field.' }),
  })
  .meta({ id: 'Failure', examples: [{ error: 'no signal ever named this order' }] });

export const OrderParams = z.strictObject({
  serviceOrderId: Id.meta({
    description: 'Its id on the ordering platform, percent-encoded.',
    examples: ['order-4711'],
  }),
});
export const LocationParams = z.strictObject({
  locationId: Id.meta({ description: 'Its id on the ordering platform, percent-encoded.', examples: ['club-1'] }),
});
const WebhookId = z
  .uuid({ version: 'v7', error: 'is not the id of a webhook, such as 019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33' })
  .meta({ examples: ['019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33'] });
export const WebhookParams = z.strictObject({ webhookId: WebhookId });

const When = z
  .string()
  .refine((text) => Time.safeParse(text).success, { error: 'is not a time such as 2027-01-31T18:00:00Z' })
  .transform((text) => new Date(text))
  .meta({ format: 'date-time', examples: ['2027-01-31T18:00:00Z'] });
const whether = (description: string): z.ZodType<boolean> =>
  z
    .enum(['true', 'false'], { error: 'is neither true nor false' })
    .transform((text) => text === 'true')
    .meta({ description, examples: ['true'] });
const oneOf = <const Values extends readonly string[]>(values: Values, description: string) =>
  z.enum(values, { error: `is none of ${values.join(', ')}` }).meta({ description });
const paging = <Cursor extends z.ZodType>(cursor: Cursor) => ({
  limit: z.coerce
    .number({ error: `is not a whole number from 1 to ${LIMIT.max}` })
    .int({ error: `is not a whole number from 1 to ${LIMIT.max}` })
    .min(1, { error: 'is less than 1' })
    .max(LIMIT.max, { error: `is more than ${LIMIT.max}` })
    .default(LIMIT.default)
    .meta({ description: 'At most so many.' }),
  cursor: cursor.optional().meta({ description: 'The `next` of the page before.' }),
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

export const ListedOrder = z
  .object({
    serviceOrderId: z.string(),
    locationId: z.string().nullable().meta({ description: 'Null until the order was fetched for the first time.' }),
    integration: z.string().nullable().meta({ description: 'At the last attempt.' }),
    fulfillment: Fulfillment.nullable(),
    placement: PlacementState,
    needsOperator: z.boolean().meta({ description: 'It waits until somebody calls `resolve`.' }),
    problem: z.string().nullable().meta({ description: 'Why it waits, is held, is in doubt or failed.' }),
    status: Status.nullable(),
    memberState: MemberState.nullable(),
    reason: z.string().nullable(),
    providerOrderId: z.string().nullable().meta({ description: "The ticket's id at the POS." }),
    signalledAt: Instant,
    nextAttemptAt: Instant.nullable(),
    finishedAt: Instant.nullable(),
    updatedAt: Instant.nullable(),
    endedAt: Instant.nullable(),
  })
  .meta({
    id: 'ListedOrder',
    examples: [
      {
        serviceOrderId: 'order-4711',
        locationId: 'club-1',
        integration: 'standard',
        fulfillment: 'pickup',
        placement: 'in_doubt',
        needsOperator: true,
        problem: 'the POS may have the order and cannot be asked',
        status: null,
        memberState: 'placed',
        reason: null,
        providerOrderId: null,
        signalledAt: '2027-01-31T18:00:00.123456+00:00',
        nextAttemptAt: null,
        finishedAt: null,
        updatedAt: '2027-01-31T18:00:00.223456+00:00',
        endedAt: null,
      },
    ],
  });

const Next = z
  .string()
  .nullable()
  .meta({
    description:
      'Where the list goes on: give it as `cursor`. Null at its end. A page may hold fewer than `limit`, even none, and ' +
      'have a `next`.',
  });
export const ListedOrders = z.object({ orders: z.array(ListedOrder), next: Next });

const StoredWebhook = {
  webhookId: z.string(),
  receivedAt: Instant,
  integration: z.string(),
  outcome: Outcome,
  events: z.int().meta({ description: 'How many the translator made of it.' }),
  reason: z
    .string()
    .nullable()
    .meta({ description: 'Why it was dropped, or what else there is to say about its outcome.' }),
  replayOf: z.string().nullable().meta({ description: 'The webhook that it replays.' }),
};

export const OrderQuery = z.strictObject({
  contents: whether('With the order as it was fetched: member data. That it was read is logged.').optional(),
});

/** The canonical order, as it was stored. */
export const Contents = z.looseObject({});

export const ShownOrder = z
  .object({
    serviceOrderId: z.string(),
    traceId: z.string().meta({ description: 'Of its OpenTelemetry trace.' }),
    placement: z.object({
      state: PlacementState,
      locationId: z.string().nullable(),
      problem: z.string().nullable(),
      underWay: z.boolean().meta({ description: 'A worker holds it now.' }),
      attempts: z.int(),
      failures: z.int(),
      signalledAt: Instant,
      deadlineAt: Instant,
      nextAttemptAt: Instant.nullable().meta({ description: 'Null when nothing more is tried by itself.' }),
      requestEndedAt: Instant.nullable(),
      finishedAt: Instant.nullable(),
    }),
    order: z
      .object({
        locationId: z.string(),
        integration: z.string().nullable(),
        fulfillment: Fulfillment,
        status: Status.nullable(),
        memberState: MemberState,
        sequence: z.int(),
        providerOrderId: z.string().nullable(),
        reason: z.string().nullable(),
        failedByUs: z.boolean(),
        requestedAt: Instant.nullable(),
        createdAt: Instant,
        updatedAt: Instant,
        endedAt: Instant.nullable(),
        erasedAt: Instant.nullable(),
      })
      .nullable()
      .meta({ description: 'Null until it was fetched for the first time.' }),
    attempts: z.array(
      z.object({
        attempt: z.int(),
        call: z.enum(['createOrder', 'findOrder']),
        outcome: z.string(),
        httpStatus: z.int().nullable(),
        milliseconds: z.int().nullable(),
        error: z.string().nullable(),
        startedAt: Instant,
        endedAt: Instant.nullable(),
      }),
    ),
    posIds: z.array(
      z.object({ locationId: z.string(), integration: z.string(), providerOrderId: z.string(), createdAt: Instant }),
    ),
    history: z.array(
      z.object({
        status: Status,
        nativeStatus: z.string(),
        outcome: Outcome,
        conflict: z.boolean(),
        sequence: z.int().nullable(),
        providerOrderId: z.string().nullable(),
        reason: z.string().nullable(),
        webhookId: z.string().nullable().meta({ description: 'Null for what we decided ourselves.' }),
        occurredAt: Instant.nullable(),
        recordedAt: Instant,
      }),
    ),
    webhooks: z.array(z.object(StoredWebhook)),
    live: z.array(
      z.object({
        sequence: z.int(),
        memberState: MemberState,
        appliedAt: Instant,
        publishedAt: Instant.nullable().meta({ description: 'Null while the topic does not have it yet.' }),
        attempts: z.int().nullable(),
      }),
    ),
    timeline: z
      .array(z.object({ at: Instant, what: z.enum(HAPPENINGS), details: z.record(z.string(), z.unknown()) }))
      .meta({ description: 'All of it in one line of time.' }),
    contents: Contents.nullable()
      .exactOptional()
      .meta({ description: 'With `contents=true`: the order as it was fetched; null once it is erased.' }),
  })
  .meta({ id: 'ShownOrder' });

export const Retried = z.object({
  serviceOrderId: z.string(),
  retry: z
    .enum(['due', 'under_way'])
    .meta({ description: 'under_way: a worker has it this moment, which is as good.' }),
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
export const Resolved = z.object({
  serviceOrderId: z.string(),
  state: z.enum(['sent', 'waiting']),
  redriven: z.int().exactOptional().meta({ description: 'Events that had waited for the ticket and went on.' }),
  late: z.boolean().exactOptional().meta({ description: 'Its deadline has passed, so it fails now.' }),
});

const webhookFilter = {
  outcome: oneOf(WEBHOOK_OUTCOMES, 'What became of it.').optional(),
  location: Id.optional().meta({ description: 'At this location.' }),
  integration: Id.optional().meta({ description: 'That it came through.' }),
  since: When.optional().describe('Received then or later.'),
  until: When.optional().describe('Received before.'),
};
export const WebhooksQuery = z.strictObject({
  ...webhookFilter,
  order: Id.optional().meta({ description: "Those in this order's history." }),
  ...paging(WebhookId),
});

export const ListedWebhooks = z.object({
  webhooks: z.array(
    z
      .object({
        ...StoredWebhook,
        receivedAt: z.date(),
        locationId: z.string(),
        bytes: z.int().meta({ description: 'Of its body.' }),
        truncated: z.boolean(),
      })
      .meta({ id: 'ListedWebhook' }),
  ),
  next: Next,
});

export const WebhookQuery = z.strictObject({
  contents: whether(
    'With `false` nothing of what it said: no `headers`, no `body`, no `reason` in its events. Only who reads those is logged.',
  ).optional(),
});

const Event = z.object({
  status: Status,
  nativeStatus: z.string(),
  serviceOrderId: z.string().optional(),
  providerOrderId: z.string().optional(),
  reason: z.string().optional(),
  occurredAt: z.string().optional(),
});

export const ShownWebhook = z
  .object({
    ...StoredWebhook,
    receivedAt: z.date(),
    locationId: z.string(),
    firstReceivedAt: z.date().meta({ description: 'Of a replay: when the webhook itself came.' }),
    headers: z
      .record(z.string(), z.string())
      .exactOptional()
      .meta({ description: 'As they came, but for `authorization` and `cookie`.' }),
    body: z
      .object({
        base64: z.string(),
        text: z.string().exactOptional().meta({ description: 'Where it is UTF-8.' }),
      })
      .exactOptional(),
    bytes: z.int().meta({ description: 'Of its body.' }),
    truncated: z.boolean().meta({ description: 'It was over WEBHOOK_BODY_LIMIT, and only its beginning is kept.' }),
    erased: z.boolean().meta({ description: 'Body and headers went with the member data of its order.' }),
    today: z
      .union([
        z.object({ events: z.array(Event) }),
        z.object({ dropped: z.string() }),
        z.object({ refused: z.string() }),
      ])
      .meta({
        description: "What a replay would read in it, by today's settings; why it would be dropped, or cannot be.",
      }),
    replays: z.array(
      z.object({ webhookId: z.string(), receivedAt: z.date(), outcome: Outcome, reason: z.string().nullable() }),
    ),
  })
  .meta({ id: 'ShownWebhook' });

export const Replay = z
  .preprocess(
    // A request without a body is one that asks for nothing special.
    (body) => body ?? {},
    z.strictObject({
      dryRun: z.boolean().default(false).meta({ description: 'Keep nothing of it: say what would become of it now.' }),
    }),
  )
  .meta({ examples: [{ dryRun: true }] });

export const Replayed = z
  .object({
    webhookId: z.string().nullable().meta({ description: 'The new webhook; null after a dry run.' }),
    replayOf: z.string(),
    locationId: z.string(),
    integration: z.string(),
    outcome: Outcome,
    reason: z.string().nullable(),
    events: z.array(
      z.object({
        status: Status,
        serviceOrderId: z.string().nullable(),
        providerOrderId: z.string().nullable(),
        outcome: z.enum(EVENT_OUTCOMES),
        conflict: z.boolean().meta({ description: 'It contradicts what we know: a person should look.' }),
      }),
    ),
    redriven: z.int().meta({ description: 'Events of others that waited for a POS id which this one told.' }),
  })
  .meta({ id: 'Replayed' });

export const REPLAY_MAX = 1_000;
export const ReplayMany = z
  .strictObject({
    ...webhookFilter,
    again: z.boolean().default(false).meta({
      description: 'Also those of which a replay has made something else already.',
    }),
    dryRun: z.boolean().default(false),
    limit: z.int().min(1).max(REPLAY_MAX).default(REPLAY_MAX),
    cursor: WebhookId.exactOptional().meta({ description: 'The `next` of the answer before.' }),
  })
  .refine((filter) => filter.outcome !== undefined || filter.since !== undefined, {
    error: 'says not which: outcome, or since, or both are required',
  })
  .meta({ examples: [{ outcome: 'dropped', since: '2027-01-31T18:00:00Z', location: 'club-1', dryRun: true }] });
export const ReplayedMany = z.object({
  dryRun: z.boolean(),
  until: z.date().meta({
    description: 'It is about what was received before. Given as `until`, the same is about the same webhooks later.',
  }),
  outcomes: z
    .partialRecord(z.enum(WEBHOOK_OUTCOMES), z.int())
    .meta({ description: 'How many of each.', examples: [{ applied: 12, dropped: 1 }] }),
  replayed: z.array(Replayed),
  refused: z.array(
    z.object({ webhookId: z.string(), locationId: z.string(), integration: z.string(), refused: z.string() }),
  ),
  left: z.int().meta({
    description:
      'How many of those that match were not reached, counted up to 10,000: send the same again, with `next` as `cursor`.',
  }),
  next: z.string().nullable().meta({
    description: 'Where it goes on, behind those that stay as they are: give it as `cursor`. Null at the end.',
  }),
});

export const TokenParams = LocationParams.extend({
  tokenId: z
    .uuid({ error: 'is not the id of a token, such as 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11; never the token itself' })
    .meta({
      description: 'Its id, as the location shows it; never the token itself.',
      examples: ['0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11'],
    }),
});

const FiveMinutes = z.array(z.int().min(0)).length(12);
const KeptLocation = {
  locationId: z.string(),
  integration: z.string(),
  pausedAt: z.date().nullable(),
  updatedAt: z.date(),
  lastSeenAt: z
    .date()
    .nullable()
    .meta({ description: 'When its last webhook came through this integration, to some ten seconds.' }),
  webhooks: FiveMinutes.meta({ description: 'Of the last hour in steps of five minutes, oldest first.' }),
  errors: FiveMinutes.meta({
    description: 'Those of them that were dropped, or refused as `unauthorized` or `not_committed`.',
  }),
};

export const ListedLocations = z.object({ locations: z.array(z.object(KeptLocation)) });

export const ShownLocation = z
  .object({
    ...KeptLocation,
    webhookUrl: z
      .string()
      .nullable()
      .meta({ description: 'What its POS calls, without the token. Null while PUBLIC_URL is unset.' }),
    knows: z.object({
      check: z.boolean().meta({ description: 'Its settings can be tested, by `check`.' }),
      connect: z.boolean().meta({ description: 'Its POS can be told our URL: `expediter provider connect`.' }),
    }),
    tokens: z.array(
      z.object({
        tokenId: z.string(),
        label: z.string().nullable(),
        integration: z.string(),
        state: z.enum(TOKEN_STATES),
        createdAt: z.date(),
        expiresAt: z.date().nullable(),
        revokedAt: z.date().nullable(),
        lastUsedAt: z.date().nullable().meta({ description: 'To some ten seconds.' }),
      }),
    ),
  })
  .meta({ id: 'ShownLocation' });

export const CheckedLocation = z
  .discriminatedUnion('state', [
    z.object({ locationId: z.string(), state: z.literal('ok') }),
    z.object({
      locationId: z.string(),
      state: z.literal('unchecked'),
      why: z.string().meta({ description: 'Its POS has no call for it, so it was not asked.' }),
    }),
    z.object({ locationId: z.string(), state: z.literal('failed'), problem: z.string(), toDo: z.string() }),
  ])
  .meta({ id: 'CheckedLocation' });
export const RevokedToken = z.object({ tokenId: z.string(), revoked: z.literal(true) });

export const PausedLocation = z.object({ locationId: z.string(), paused: z.boolean() });
