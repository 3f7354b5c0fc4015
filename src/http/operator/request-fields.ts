/** Fields that several routes share. */
import { z } from 'zod';
import { Time } from '../../core/domain/order.ts';

const LIMIT = { default: 50, max: 200 };

export const When = z
  .string()
  .refine((text) => Time.safeParse(text).success, { error: 'is not a time such as 2027-01-31T18:00:00Z' })
  .transform((text) => new Date(text))
  .meta({ format: 'date-time', examples: ['2027-01-31T18:00:00Z'] });

export const whether = (description: string): z.ZodType<boolean> =>
  z
    .enum(['true', 'false'], { error: 'is neither true nor false' })
    .transform((text) => text === 'true')
    .meta({ description, examples: ['true'] });

export const oneOf = <const Values extends readonly string[]>(values: Values, description: string) =>
  z.enum(values, { error: `is none of ${values.join(', ')}` }).meta({ description });

export const paging = <Cursor extends z.ZodType>(cursor: Cursor) => ({
  limit: z.coerce
    .number({ error: `is not a whole number from 1 to ${LIMIT.max}` })
    .int({ error: `is not a whole number from 1 to ${LIMIT.max}` })
    .min(1, { error: 'is less than 1' })
    .max(LIMIT.max, { error: `is more than ${LIMIT.max}` })
    .default(LIMIT.default)
    .meta({ description: 'At most so many.' }),
  cursor: cursor.optional().meta({ description: 'The `next` of the page before.' }),
});
