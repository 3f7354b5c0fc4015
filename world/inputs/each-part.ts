/** A place in a JSON value, as keys and indexes from its root. */
export type Place = readonly (string | number)[];

/** Lists the places of all parts of a JSON value, except the value itself. */
export function partsOf(json: unknown, at: Place = []): Place[] {
  if (typeof json !== 'object' || json === null) return [];
  return Object.entries(json).flatMap(([key, value]) => {
    const place = [...at, Array.isArray(json) ? Number(key) : key];
    return [place, ...partsOf(value, place)];
  });
}

/** Copies a JSON value with another part at this place; without it, if the part is undefined. */
export function withPart(json: unknown, [key, ...rest]: Place, part: unknown): unknown {
  if (key === undefined) return part;
  const copy = structuredClone(json) as Record<string | number, unknown>;
  if (part === undefined && rest.length === 0) {
    if (Array.isArray(copy)) copy.splice(Number(key), 1);
    else delete copy[key];
  } else {
    copy[key] = withPart(copy[key], rest, part);
  }
  return copy;
}

export function partAt(json: unknown, place: Place): unknown {
  return place.reduce((part, key) => (part as Record<string | number, unknown>)[key], json);
}
