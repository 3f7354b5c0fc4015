/** What may stand in a log of somebody else's error: a name or a code, no sentence. */
const WORD = /^[\w.$-]{1,100}$/;

/** @returns the value if it is a word; undefined for any other, which may quote a member */
export function wordOf(value: unknown): string | undefined {
  return typeof value === 'string' && WORD.test(value) ? value : undefined;
}
