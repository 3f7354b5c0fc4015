/** One field of an answer: where it is, and what is there, without its value. */
export type ShapeLine = { path: string; kind: string };

const PATTERN_MAX = 32;
const LINES_MAX = 500;

/** Describes all fields of an answer, those of a list's entries together. Values may be a member's, so none is told. */
export function describeShape(data: unknown): ShapeLine[] {
  const kinds = new Map<string, Set<string>>();
  const look = (value: unknown, path: string): void => {
    if (path !== '') kinds.set(path, (kinds.get(path) ?? new Set()).add(kindOf(value)));
    if (typeof value !== 'object' || value === null || kinds.size > LINES_MAX) return;
    for (const [key, each] of Object.entries(value)) {
      // A scalar of the platform's own may have any text for a name.
      const name = Array.isArray(value) ? '*' : /^\w{1,64}$/.test(key) ? key : '?';
      look(each, path === '' ? name : `${path}.${name}`);
    }
  };
  look(data, '');
  return [...kinds].map(([path, each]) => ({ path, kind: [...each].join(' or ') }));
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `list of ${value.length}`;
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value === 'string' ? kindOfText(value) : typeof value;
}

/** An amount, a time and an enum are told by their form. */
function kindOfText(text: string): string {
  if (text === '') return 'empty text';
  if (text.length <= PATTERN_MAX && /\d/.test(text) && /^[-+\d.,:/TZ ]+$/.test(text)) {
    return `text like ${text.replaceAll(/\d/g, '0')}`;
  }
  return /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/.test(text) ? 'text in capitals' : 'text';
}
