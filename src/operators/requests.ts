/** Schemas of the input of operations, for requests and for commands. */
import { Option } from 'commander';
import { z } from 'zod';
import { readMinutes } from '../terminal/print.ts';
import { MEMBER_STATES, STATUSES } from '../core/domain/lifecycle.ts';
import { Id, Time } from '../core/domain/order.ts';
import { PLACEMENT_STATES } from '../core/domain/placement.ts';
import { WEBHOOK_OUTCOMES } from '../core/domain/webhook.ts';
import { Typed } from '../core/domain/typed.ts';
import { type Caller, type CommandOption, type Options } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';

export const PAGE_MAX = 200;

export const When = z
  .string()
  .refine((text) => Time.safeParse(text).success, { error: 'must be a time such as 2027-01-31T18:00:00Z' })
  .transform((text) => new Date(text))
  .meta({ format: 'date-time', examples: ['2027-01-31T18:00:00Z'] });

export const whether = (description: string): z.ZodType<boolean> =>
  z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .meta({ description, examples: ['true'] });

/** The schema of a body that a request may leave out: it then has no options. */
export const optional = <Body extends z.ZodType>(body: Body) => z.preprocess((given) => given ?? {}, body);

export const optionalFields = <Fields extends z.ZodRawShape>(fields: Fields) => optional(z.strictObject(fields));

export const flag = (description: string) => z.boolean().default(false).meta({ description });

export const oneOf = <const Values extends readonly string[]>(values: Values, description: string) =>
  z.enum(values).meta({ description });

/** Converts a text of a query to a number. A text that is not a number stays text, so that validation refuses it. */
const numberOf = (given: unknown): unknown =>
  typeof given === 'string' && !Number.isNaN(Number(given)) ? Number(given) : given;

export const paging = <Cursor extends z.ZodType>(cursor: Cursor) => ({
  limit: z.preprocess(numberOf, z.int().min(1).max(PAGE_MAX)).default(50).describe('The maximum number of rows.'),
  cursor: cursor.optional().meta({ description: 'The `next` of the previous page.' }),
});

export const group = Id.optional().meta({ description: 'Only at locations of this group.', examples: ['brand-nord'] });

export const LocationParams = z.strictObject({
  locationId: Id.meta({ description: "The location's id on the ordering platform.", examples: ['club-1'] }),
});

export const EXAMPLE_ID = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11';

/** Makes the schema of an id. Errors do not repeat the input, because somebody may have typed the secret instead. */
export const idOf = (thing: 'token' | 'session' | 'grant') => {
  const but = thing === 'token' ? ', never the token itself' : '';
  return z.uuid({ error: `must be the id of a ${thing}, such as ${EXAMPLE_ID}${but}` }).meta({
    description: `Its id, as the list shows it${but}.`,
    examples: [EXAMPLE_ID],
  });
};

export const SessionParams = z.strictObject({ sessionId: idOf('session') });

/** The description of a field as the help of a command has it. */
export const inHelp = (description = ''): string =>
  description.replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase()).replace(/\.$/, '');

/** A schema and what it wraps: the innermost is last. */
const layersOf = (schema: z.ZodType): z.ZodType[] =>
  schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault
    ? [schema, ...layersOf(schema.unwrap() as z.ZodType)]
    : [schema];

/** The options of a command for fields of its query or its body, which say their help, their choices and how they are read. */
export function optionsOf({ shape }: z.ZodObject, ...flags: string[]): CommandOption[] {
  return flags.map((each) => {
    const field = shape[new Option(each).attributeName()] as z.ZodType;
    const layers = layersOf(field);
    const type = layers.at(-1);
    return {
      flags: each,
      about: inHelp(layers.find(({ description }) => description !== undefined)?.description),
      ...(type instanceof z.ZodEnum && { choices: type.options as string[] }),
      ...(type === When && { read: 'past' }),
      ...(type instanceof z.ZodNumber && { read: Number }),
      ...(!field.safeParse(undefined).success && { required: true }),
    };
  });
}
export const pagingOptions = (id: string): CommandOption[] => [
  { flags: '--limit <count>', about: 'maximum number of rows', read: 'limit' },
  { flags: `--after <${id}>`, about: 'the last row of the previous list' },
];

type End = { minutes?: number | undefined; until?: Date | undefined };

/** How a state that may end automatically is given: its end and its reason. @param ends such as `it ends` */
export const lasting = (ends: string) => ({
  fields: {
    minutes: z
      .int()
      .min(1)
      .max(10_080)
      .optional()
      .describe(`${capital(ends)} automatically after these.`),
    until: When.optional().describe(`${capital(ends)} automatically at this time.`),
    reason: Typed(200)
      .optional()
      .describe('For other operators. The audit has it, so do not write the data of a member.'),
  },
  hasOneEnd: [
    ({ minutes, until }: End): boolean => minutes === undefined || until === undefined,
    { error: 'must not have both minutes and until' },
  ] as const,
  /** @throws NotDone */
  refusePast({ service }: Caller, { until }: End): void {
    const now = service?.now() ?? new Date();
    if (until !== undefined && until <= now) throw new NotDone(400, 'until is in the past. Give a time in the future.');
  },
  /** The end and the reason, for the audit. */
  inWords: ({ minutes, until, reason }: End & { reason?: string | undefined }): string =>
    (until === undefined ? (minutes === undefined ? '' : ` for ${minutes} minutes`) : ` until ${until.toISOString()}`) +
    (reason === undefined ? '' : `: ${reason}`),
  options: [
    {
      flags: '--for <duration>',
      about: `${ends} automatically after this time, such as 30m or 2h, up to 7d`,
      read: readMinutes,
      conflicts: 'until',
    },
    { flags: '--until <time>', about: `${ends} automatically at this time, such as 2027-01-31T18:00:00Z` },
    { flags: '--reason <text>', about: 'why, for other operators' },
  ] satisfies CommandOption[],
  read: ({ for: minutes, ...typed }: Options): Options => ({ ...typed, minutes }),
});

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export const OrderParams = z.strictObject({
  serviceOrderId: Id.meta({
    description: "The order's id on the ordering platform.",
    examples: ['order-4711'],
  }),
});

export const OrdersQuery = z.strictObject({
  group,
  location: Id.optional().meta({ description: 'Only orders at this location.' }),
  integration: Id.optional().meta({ description: 'Only orders last sent through this integration.' }),
  state: oneOf(PLACEMENT_STATES, 'State of the placement.').optional(),
  needs: oneOf(
    ['operator', 'late'],
    'Only orders that need an operator (see `needsOperator`), or are late as on the board.',
  ).optional(),
  open: whether('Only orders that have not ended (`true`) or that have ended (`false`).').optional(),
  status: oneOf(STATUSES, 'The last status that the POS reported.').optional(),
  memberState: oneOf(MEMBER_STATES, 'The state that the member sees.').optional(),
  since: When.optional().describe('Only orders signalled at this time or later.'),
  until: When.optional().describe('Only orders signalled before this time.'),
  ...paging(Id),
});

export const OrderQuery = z.strictObject({
  ordered: whether('Add what was ordered and its price, without member data.').optional(),
  contents: whether(
    'Add the order as it was fetched. This contains member data, so the audit records who reads it.',
  ).optional(),
});

export const Resolve = z
  .discriminatedUnion('there', [
    z.strictObject({
      there: z.literal(true),
      providerOrderId: Id.exactOptional().meta({ description: "The ticket's id at the POS, if you know it." }),
    }),
    z.strictObject({ there: z.literal(false) }),
  ])
  .meta({ examples: [{ there: true, providerOrderId: '8F2K' }, { there: false }] });

export const ConcludeCancel = z
  .strictObject({ cancelled: z.boolean().meta({ description: 'False if the restaurant makes the order anyway.' }) })
  .meta({ examples: [{ cancelled: true }] });

export const AnswerChange = z
  .strictObject({
    answer: oneOf(['done', 'too_late'], 'What the restaurant said about the change.'),
    since: Time.exactOptional().describe(
      'The `since` of the change that the answer is about. If there is a later change, the answer is refused.',
    ),
  })
  .meta({ examples: [{ answer: 'done', since: '2027-01-31T18:00:00.123456Z' }] });

const WebhookId = z
  .uuid({ version: 'v7', error: 'must be the id of a webhook, such as 019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33' })
  .meta({ examples: ['019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33'] });
export const WebhookParams = z.strictObject({ webhookId: WebhookId });

const webhookFilter = {
  group,
  outcome: oneOf(WEBHOOK_OUTCOMES, 'The outcome of the webhook.').optional(),
  location: Id.optional().meta({ description: 'Only webhooks at this location.' }),
  integration: Id.optional().meta({ description: 'Only webhooks through this integration.' }),
  since: When.optional().describe('Only webhooks received at this time or later.'),
  until: When.optional().describe('Only webhooks received before this time.'),
};
export const WebhooksQuery = z.strictObject({
  ...webhookFilter,
  oldToken: whether('Only webhooks refused for an old token (`true`), or only other webhooks (`false`).').optional(),
  order: Id.optional().meta({ description: "Only webhooks in this order's history." }),
  ...paging(WebhookId),
});

export const WebhookQuery = z.strictObject({
  contents: whether(
    'With `false`, `headers`, `body` and the `reason` of events are left out, and the audit records nothing.',
  ).optional(),
});

export const Replay = optionalFields({
  dryRun: flag('Change nothing, and answer with the outcome that a replay would have now.'),
}).meta({ examples: [{ dryRun: true }] });

const REPLAY_MAX = 1_000;
export const ReplayMany = z
  .strictObject({
    ...webhookFilter,
    oldToken: flag('Replay only webhooks refused for an old token. By default these are left out.'),
    again: flag('Replay also webhooks whose outcome a replay has already changed.'),
    dryRun: flag('Change nothing.'),
    limit: z.int().min(1).max(REPLAY_MAX).default(REPLAY_MAX).describe(`At most ${REPLAY_MAX}.`),
    cursor: WebhookId.exactOptional().meta({ description: 'The `next` of the previous answer.' }),
  })
  .refine((filter) => filter.outcome !== undefined || filter.since !== undefined || filter.oldToken, {
    error: 'must say which webhooks: outcome, since or oldToken is required',
  })
  .meta({ examples: [{ outcome: 'dropped', since: '2027-01-31T18:00:00Z', location: 'club-1', dryRun: true }] });
