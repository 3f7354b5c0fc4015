import { z } from 'zod';
import { CauseText } from './cause-text.ts';

/** Codes for what was left out of an order before it was placed. A code never changes its meaning. */
export const LEFT_OUT_CODES = [
  'phone_unusable',
  'email_unusable',
  'coordinates_unusable',
  'address_unusable',
  /** The text was cut, so only its end is missing. */
  'text_too_long',
  'field_unknown',
] as const;
export type LeftOutCode = (typeof LEFT_OUT_CODES)[number];

/** A field that was left out of an order. Its value is not stored, because it may be a member's data. */
export type LeftOut = { code: LeftOutCode; path: string };

/** Stored `LeftOut`s. A newer version may have written a code that this version does not know. */
export const StoredLeftOuts = z
  .array(
    z.object({
      code: z.string().meta({ description: `One of ${LEFT_OUT_CODES.join(', ')}, or of a newer version.` }),
      path: CauseText.meta({ description: '`member.phone`, `items.0.name`.' }),
    }),
  )
  .meta({ description: 'Parts of the order that were left out because they cannot be used.' });
