/** Replaces one value, picked by number among all in the tree. */
export function replacePart(original: unknown, at: number, part: unknown): unknown {
  let size = 0;
  JSON.stringify(original, (_key, value: unknown) => (size++, value));
  let index = 0;
  return JSON.parse(JSON.stringify(original), (_key, value: unknown) => (index++ === at % size ? part : value));
}
