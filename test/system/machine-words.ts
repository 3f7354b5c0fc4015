/** What people must not read on a page of the console, except in Details and in what is there to be copied. */

/** Each kind by its name. A new kind is a row here. */
const KINDS: Readonly<Record<string, RegExp>> = {
  JSON: /[{[]"|":\s*[{["\d]/,
  'a code': /\b[A-Z]{2,}_[A-Z\d_]+\b|\bE[A-Z]{5,}\b/,
  'snake case': /(?<![\w/.@-])[a-z\d]+_[a-z\d_]+\b/,
  'camel case': /(?<![\w/.@-])[a-z]+[A-Z]\w*/,
  'a path of a file': /\b[\w-]+\/[\w./-]*\.(md|tsx?|json|yaml)\b/,
  'a request': /\b(GET|HEAD|POST|PUT|PATCH|DELETE) (https?:|\/)/,
  'a status of HTTP': /\b(HTTP|answered|with) [1-5]\d\d\b/,
  'a value that is missing': /\b(undefined|NaN)\b|\[object /,
};
/** Names that are written so: brands. */
const NAMES = /\b(iPhone|macOS)\b/g;

/** @returns what was found in each text, with its kind and its surroundings */
export function machineWordsIn(texts: readonly string[], kinds: Readonly<Record<string, RegExp>> = KINDS): string[] {
  return [...new Set(texts)].flatMap((text) =>
    Object.entries(kinds).flatMap(([kind, pattern]) => {
      const plain = text.replaceAll(NAMES, 'Name');
      const at = plain.search(pattern);
      return at < 0 ? [] : [`${kind}: ${plain.slice(Math.max(0, at - 60), at + 80)}`];
    }),
  );
}
