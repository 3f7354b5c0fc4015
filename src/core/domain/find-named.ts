/** Finds a person in a list by what somebody typed. The console uses it too, so this file loads nothing. */

/** Names listed when none is like the text. */
const LISTED = 10;

const folded = (text: string): string => text.trim().normalize('NFKC').toLowerCase();

/** @returns the name as it is listed; undefined if the text names nobody */
export function findNamed(text: string, names: readonly string[]): string | undefined {
  return names.find((name) => name === text.trim()) ?? names.find((name) => folded(name) === folded(text));
}

const quoted = (name: string): string => `"${name}"`;

/** Says that nobody has the name, and what to do. */
export function nobodyNamed(text: string, names: readonly string[]): string {
  const nobody = `Nobody called ${quoted(text.trim())} may take cases here.`;
  if (names.length === 0) return `${nobody} First make a named token with the role operator for each person.`;
  const near = alike(text, names).map(quoted);
  if (near.length > 0) return `${nobody} Did you mean ${near.join(' or ')}?`;
  const more = names.length > LISTED ? ', and others' : '';
  return `${nobody} Choose one of: ${names.slice(0, LISTED).map(quoted).join(', ')}${more}.`;
}

/** The three names that are most like a text: a part of it or a few letters off, also in the part before an @. */
function alike(text: string, names: readonly string[]): string[] {
  const typed = folded(text);
  const off = (name: string): number =>
    Math.min(...[name, name.split('@')[0] ?? name].map((each) => lettersOff(typed, folded(each))));
  const isLike = (name: string): boolean =>
    (typed !== '' && folded(name).includes(typed)) || off(name) <= Math.max(1, typed.length / 3);
  return names
    .filter(isLike)
    .toSorted((one, other) => off(one) - off(other))
    .slice(0, 3);
}

/** How many letters must be added, removed or replaced to make one text from another. */
function lettersOff(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j += 1) {
      const replaced = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
