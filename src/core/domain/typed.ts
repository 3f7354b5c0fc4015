import { z } from 'zod';
import { isStorable } from './cause-text.ts';
import { NOT_BLANK } from './order.ts';

/** A text that a person typed, of at most so many characters. */
export const Typed = (most: number): z.ZodString =>
  z
    .string()
    .trim()
    .max(most)
    .regex(NOT_BLANK, { error: 'is blank' })
    .refine(isStorable, { error: 'contains a NUL or a lone surrogate' });
