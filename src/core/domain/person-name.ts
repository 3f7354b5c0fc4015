/** Joins the parts of a name. Those that are missing or blank are left out. */
export function joinName(...parts: (string | null | undefined)[]): string {
  return parts.flatMap((part) => part?.trim() || []).join(' ');
}

/** Splits a name before its last word. A single word becomes the first name. */
export function splitName(name: string): { first: string; last: string } {
  const words = name.trim().split(/\s+/);
  const last = words.length > 1 ? (words.pop() ?? '') : '';
  return { first: words.join(' '), last };
}
