import { z } from 'zod';
import { CauseText } from './cause-text.ts';

/** Codes of the parts that were left out of an order that was placed. A closed list. */
export const LEFT_OUT_CODES = [
  'phone_unusable',
  'email_unusable',
  'coordinates_unusable',
  'address_unusable',
  /** Only the end of the text is missing. */
  'text_too_long',
  'field_unknown',
] as const;
export type LeftOutCode = (typeof LEFT_OUT_CODES)[number];

/** A field that was left out of an order. Its value may be a member's data, so it is not here. */
export type LeftOut = { code: LeftOutCode; path: string };

/** A stored `LeftOut`. A newer version may have written a code that this version does not know. */
export const StoredLeftOut = z.object({
  code: z.string().meta({ description: `One of ${LEFT_OUT_CODES.join(', ')}, or of a newer version.` }),
  path: CauseText.meta({ description: '`member.phone`, `items.0.name`.' }),
});
