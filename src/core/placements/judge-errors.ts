import { hasValue } from './has-value.ts';
import type { CodedError } from './read-errors.ts';

/** What an answer with errors, or with another status than 200, says about the order that was asked for. */
export type Judgement = 'missing' | 'refused' | 'id invalid' | 'failing';

/** @param answer.data GraphQL's, of which errors further down tell where they are */
export function judgeErrors(answer: { status: number; data: unknown; errors: readonly CodedError[] }): Judgement {
  const { status, data, errors } = answer;
  const codes = errors.filter(({ error }) => isAboutOrder(error.path, data)).map(({ code }) => code);
  if (codes.includes('NOT_FOUND')) return 'missing';
  // Whatever we may not read of an order, no other try may, either.
  const isRefusal = errors.some(({ code }) => code === 'UNAUTHENTICATED' || code === 'FORBIDDEN');
  if (isRefusal || status === 401 || status === 403) return 'refused';
  return codes.includes('BAD_USER_INPUT') ? 'id invalid' : 'failing';
}

/** Errors further down, such as about a menu item, are not about the order. */
function isAboutOrder(path: unknown, data: unknown): boolean {
  return !Array.isArray(path) || (!hasValue(data) && (path.length === 1 || isNullAt(data, path)));
}

/** True if the error's own field is null, and not one above it, as where a field further down must not be null. */
function isNullAt(data: unknown, path: readonly unknown[]): boolean {
  let value = data;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return false;
    value = (value as Record<string, unknown>)[String(key)];
  }
  return value === null;
}
