import { z } from 'zod';
import { Email } from '../domain/email.ts';
import { Typed } from '../domain/typed.ts';

/** What a contact can be told about an order, and the ways to tell it. */
export const NOTICE_REASONS = ['late', 'failed', 'in_doubt', 'cancel_by_phone', 'changed'] as const;
export type NoticeReason = (typeof NOTICE_REASONS)[number];
export const LANGUAGES = ['en', 'de', 'fr', 'es'] as const;
export type Language = (typeof LANGUAGES)[number];
const TimeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, { error: 'is not a time such as 22:00' });

export const Contact = z
  .strictObject({
    name: Typed(200).exactOptional(),
    email: Email.exactOptional(),
    phone: Typed(50)
      .exactOptional()
      .meta({
        description: "In E.164, or as it is dialled in the location's country. It is stored in E.164.",
        examples: ['+4930123456'],
      }),
    via: z.enum(['email', 'webhook']).exactOptional().meta({
      description: 'How the service tells it about orders. Without it, it is only shown.',
    }),
    afterMinutes: z.int().min(0).max(120).exactOptional().meta({
      description: 'When it is told, in minutes after the trouble began. By default at once, or 2 if an order is late.',
    }),
    quiet: z
      .strictObject({ from: TimeOfDay, to: TimeOfDay })
      .exactOptional()
      .meta({
        description: "When it is told nothing, in the location's time zone.",
        examples: [{ from: '22:00', to: '08:00' }],
      }),
    language: z.enum(LANGUAGES).exactOptional().meta({ description: 'By default `en`.' }),
    about: z.array(z.enum(NOTICE_REASONS)).min(1).exactOptional().meta({ description: 'By default everything.' }),
  })
  .refine(({ email, phone }) => email !== undefined || phone !== undefined, { error: 'needs an email or a phone' })
  .refine(({ via, email }) => via !== 'email' || email !== undefined, {
    error: 'needs an email to be told by email',
  });
export type Contact = z.infer<typeof Contact>;
