import { fileURLToPath } from 'node:url';
import { NeedsOperator } from '../domain/errors.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { wordOf } from '../domain/member-text.ts';
import { classifyError } from '../domain/classify-error.ts';
import type { OrderModule, PlatformError } from '../domain/order-module.ts';
import { hasValue } from './placement-sql.ts';

/** The functions for mappers. Lines of the bundle are told by its source maps. */
const OURS = fileURLToPath(new URL('../../../src/platform/', import.meta.url));

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

/** An error of the platform, and the code that it is judged by. */
export type CodedError = { error: PlatformError; code: string | undefined };

/**
 * Makes a function that reads the `errors` of a GraphQL answer, whatever is there.
 * @param warn told the first time that the module's `errorCode` throws. Errors keep their own codes then.
 */
export function errorReader(
  module: Pick<OrderModule, 'errorCode'>,
  warn: (problem: string) => void,
): (errors: unknown) => CodedError[] {
  let hasThrown = false;
  const translate = (error: PlatformError): unknown => {
    try {
      return askMapper(() => module.errorCode?.(error));
    } catch (thrown) {
      if (!hasThrown)
        warn(`${describeCause(classifyError(thrown).cause)}: errors of the platform keep their own codes`);
      hasThrown = true;
      return undefined;
    }
  };
  return (errors) =>
    (Array.isArray(errors) ? errors : []).filter(isError).map((error) => {
      const code = [translate(error), error.extensions?.['code']].find((each) => typeof each === 'string');
      return { error, code };
    });
}

function isError(value: unknown): value is PlatformError {
  return typeof value === 'object' && value !== null;
}

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
