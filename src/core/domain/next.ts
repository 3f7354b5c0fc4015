import { z } from 'zod';

/** The place at which a list continues after a page. */
export const Next = z
  .string()
  .nullable()
  .meta({
    description:
      'Where the list goes on: give it as `cursor`. Null at its end. A page may hold fewer than `limit`, even none, and ' +
      'have a `next`.',
  });
