import { z } from 'zod';

/** A field that may be left out. Null and an empty string count as left out, since many POS systems write them. */
export function absentable<Shape extends z.ZodType>(shape: Shape) {
  return z.preprocess((value) => (value === null || value === '' ? undefined : value), shape.optional());
}
