import { z } from 'zod';

/** The position at which a list continues after a page. */
export const Next = z
  .string()
  .nullable()
  .describe(
    'Where the list continues: pass it as `cursor`. Null at the end of the list. A page with fewer entries than ' +
      '`limit`, even none, may have a `next`.',
  );
