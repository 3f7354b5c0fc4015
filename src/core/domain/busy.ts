import { z } from 'zod';

/** What a POS says of its kitchen: whether it takes orders now. */
export const Busy = z.object({
  /**
   * Until when it takes none, counted from when the webhook came: the vendor's own end, or one after which a lost "open
   * again" must not keep the location closed. Null if it takes orders.
   */
  pausedUntil: z.date().nullable(),
  /** Fields that the vendor wants in the answer once it is so, beside ours. */
  answer: z.record(z.string(), z.string()).optional(),
});
export type Busy = z.infer<typeof Busy>;
