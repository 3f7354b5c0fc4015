import { isObject } from './json-text.ts';

/** The fields that the running `noteUnread` has found. Reading is synchronous, so there is only one at a time. */
let found: Set<string> | undefined;

/** Runs `read`, and lists the fields with values that it left out because it could not read them, as `order.occurredAt`. */
export function noteUnread<Result>(read: () => Result): { result: Result; unread: string[] } {
  const outer = found;
  found = new Set();
  try {
    return { result: read(), unread: [...found] };
  } finally {
    found = outer;
  }
}

/** Compares a value with what a schema read from it. Does nothing unless `noteUnread` runs. */
export function compareRead(value: unknown, read: unknown, path = ''): void {
  if (found === undefined || !isObject(value) || !isObject(read) || Array.isArray(value) !== Array.isArray(read))
    return;
  for (const [key, part] of Object.entries(read)) {
    const given = value[key];
    const at = path === '' ? key : `${path}.${key}`;
    if (part !== undefined) compareRead(given, part, at);
    else if (given !== undefined && given !== null && given !== '') found.add(at);
  }
}
