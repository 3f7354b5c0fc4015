/** One thing that is asked of a POS, and whether it holds. No secret; of a member only the test order's, who is made up. */
export type Certified = {
  /** A few words, such as `takes it once`; for a status its own. */
  check: string;
  /** `skipped` means not looked at, for the reason in `found`. */
  state: 'ok' | 'failed' | 'skipped';
  found: string;
  /** What was sent or came, as far as there was anything. */
  request?: string;
  /** Of a failure: what would have been right. */
  expected?: string;
  /** Of a failure: the remedy. */
  toDo?: string;
};
