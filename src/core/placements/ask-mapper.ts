import { fileURLToPath } from 'node:url';
import { NeedsOperator } from '../domain/errors.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { wordOf } from '../domain/word-of.ts';

/** The functions for mappers. */
const OURS = fileURLToPath(new URL('../../platform/', import.meta.url));

/**
 * Runs a function of an order module.
 * @throws NeedsOperator for whatever it throws: with the error's class, code, field and place, never with its message,
 *   which may quote a member
 */
export function askMapper<Answer>(ask: () => Answer): Answer {
  try {
    return ask();
  } catch (error) {
    if (error instanceof NeedsOperator) throw error;
    const { name, code, field } = (error ?? {}) as { name?: unknown; code?: unknown; field?: unknown };
    const cause = {
      code: 'order_mapper_threw',
      error: wordOf(name) ?? typeof error,
      errorCode: wordOf(code),
      field: wordOf(field),
      at: placeOf(error),
    } as const;
    throw new NeedsOperator(describeCause(cause), { cause });
  }
}

/** Finds where it was thrown, as `map-order.ts:42`: the first place that is not one of the functions for mappers. */
function placeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined;
  // The message, which comes first, may look like a place.
  const calls = error.stack.slice(error.stack.indexOf(error.message) + error.message.length);
  for (const [, path = '', line = ''] of calls.matchAll(/^ +at [^/\n]*(\/[^()\n]+):(\d+):\d+\)?$/gm)) {
    if (path.includes(OURS)) continue;
    const place = `${path.split('/').at(-1)}:${line}`;
    return /^[\w.:-]{1,100}$/.test(place) ? place : undefined;
  }
  return undefined;
}
