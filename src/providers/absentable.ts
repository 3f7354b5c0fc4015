import { z } from 'zod';

/** A field that may be left out; many a till writes null or an empty string for what it does not have. */
export function absentable<Shape extends z.ZodType>(shape: Shape) {
  return z.preprocess((value) => (value === null || value === '' ? undefined : value), shape.optional());
}
