import { z } from 'zod';
import { Instant } from './order.ts';

export const ATTENTION_KINDS = [
  'in_doubt',
  'cancel_by_phone',
  'failed',
  'conflict',
  'changed',
  'held',
  'silent',
  'dropped',
  'unreachable',
  'contacts',
  'unnotified',
] as const;
export const ATTENTION_EVENTS = ['opened', 'updated', 'closed'] as const;
export type AttentionKind = (typeof ATTENTION_KINDS)[number];

/** Something that needs a person. `docs/attention-event.schema.json` is generated from this. */
export const AttentionEvent = z
  .object({
    event: z.enum(ATTENTION_EVENTS),
    at: Instant.meta({ description: 'When this event was made.' }),
    id: z.string().meta({ description: 'The same in all events of one need: its kind, and what it is about.' }),
    kind: z.enum(ATTENTION_KINDS).meta({
      description:
        '`in_doubt`, `cancel_by_phone`, `conflict` and `changed` are about one order. `failed`, `held`, `silent`, ' +
        '`dropped`, `unreachable` (its POS) and `contacts` (not reached) are about a location. `unreachable` without ' +
        '`locationId` is about at least 5 locations of an integration. `unnotified`: live messages are not taken by the topic or by STATUS_WEBHOOK_URL.',
    }),
    sentence: z.string().meta({ description: 'What is wrong and what to do, for a chat or a pager.' }),
    serviceOrderId: z.string().nullable(),
    callOutCode: z.string().nullable(),
    locationId: z.string().nullable(),
    integration: z.string().nullable(),
    count: z.int().meta({ description: 'Number of orders, webhooks, messages or locations.' }),
    holder: z.string().nullable().meta({ description: 'The operator who takes care of it. Null for nobody.' }),
    givenBy: z
      .string()
      .nullable()
      .meta({ description: 'Who handed it over to the holder. Null if the holder took it.' }),
    given: z
      .array(
        z.object({ callOutCode: z.string().nullable(), holder: z.string(), givenBy: z.string(), takenAt: Instant }),
      )
      .meta({ description: 'The orders of a location that were handed over one by one.' }),
    openedAt: Instant,
    closedAt: Instant.nullable().meta({ description: 'When it needed nobody any more.' }),
    reminders: z.int().meta({ description: 'How often it was told again, because nobody took it.' }),
    url: z.url().nullable().meta({ description: 'Its page in the console. Null if CONSOLE_URL is not set.' }),
    sequence: z.int().meta({
      description:
        'A higher number is newer. Numbers are skipped. Drop an event that is not above your last of this need.',
    }),
  })
  .meta({
    id: 'AttentionEvent',
    title: 'Attention event',
    description:
      'Something needs a person, has changed, or needs nobody any more: `expediter.attention.opened.v1`, `.updated.v1` and ' +
      '`.closed.v1`. If a need changes faster than it is told, only its latest state is told. Fields and kinds may be added.',
  });
export type AttentionEvent = z.infer<typeof AttentionEvent>;
