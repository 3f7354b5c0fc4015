import { fileURLToPath } from 'node:url';
import type { ClientError, GraphQLClient } from 'graphql-request';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { wordOf } from '../domain/member-text.ts';
import { classifyError, parseRetryAfter } from '../domain/classify-error.ts';
import type { OrderModule, PlatformError } from '../domain/order-module.ts';
import { hasValue } from './placement-sql.ts';
import { AnswerTooLarge, boundedFetch } from '../egress/bounded-fetch.ts';

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
type Judgement = 'missing' | 'refused' | 'id invalid' | 'failing';

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

/** Asks the platform for one order. @returns GraphQL's `data`; undefined if the platform has no such order (yet) */
type FetchOrderData = (serviceOrderId: string) => Promise<unknown>;

const TIMEOUT_MS = 8_000;
/** Bytes of one order. One of 300 items with all about them is below 1 MiB. */
const ORDER_LIMIT = 4 * 2 ** 20;

/**
 * Makes a function that throws TryAgain, NeedsOperator or GiveUp, never the client library's own errors: their messages
 * contain the whole answer, and so a member's data.
 */
export function orderDataFetcher(about: {
  url: string;
  token: string | undefined;
  module: Omit<OrderModule, 'toCanonicalOrder'>;
  /** Told once if the module's `errorCode` throws. */
  warn: (problem: string) => void;
  /** Given the errors of an answer that has some. */
  onErrors?: (errors: readonly CodedError[]) => void;
}): FetchOrderData {
  const { url, token, module, onErrors } = about;
  const readErrors = errorReader(module, about.warn);
  const headers = headersOf(module, token);
  let client: GraphQLClient | undefined;
  return async (serviceOrderId) => {
    const variables = askMapper(() => variablesOf(module, serviceOrderId));
    const { ClientError, GraphQLClient } = await loadGraphqlRequest();
    client ??= new GraphQLClient(url, { headers, fetch: boundedFetch(ORDER_LIMIT) });
    try {
      const data = await client.request<unknown>({
        document: module.query,
        variables,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      return hasValue(data) ? data : undefined;
    } catch (error) {
      if (!(error instanceof ClientError)) throw noAnswer(error as Error);
      return classifyAnswer(error.response, (errors) => {
        const coded = readErrors(errors);
        onErrors?.(coded);
        return coded;
      });
    }
  };
}

/** Loads what asks, and all of GraphQL with it: some 40 ms in which nothing else happens. */
export const loadGraphqlRequest = (): Promise<typeof import('graphql-request')> => import('graphql-request');

export function headersOf(module: Pick<OrderModule, 'headers'>, token: string | undefined): Record<string, string> {
  return module.headers?.(token) ?? (token === undefined ? {} : { authorization: `Bearer ${token}` });
}

/** @throws whatever the module's function throws */
export function variablesOf(module: Pick<OrderModule, 'variables'>, orderId: string): Record<string, unknown> {
  return module.variables?.(orderId) ?? { id: orderId };
}

function noAnswer(error: Error): NeedsOperator | TryAgain {
  if (error instanceof AnswerTooLarge) {
    const cause = { code: 'platform_answer_too_large' } as const;
    return new NeedsOperator(describeCause(cause), { cause });
  }
  const name = error.name === 'TimeoutError' ? `no answer in ${TIMEOUT_MS} ms` : 'no usable answer';
  return new TryAgain(`the ordering platform gave ${name}`, { sent: false, cause: { code: 'platform_unreachable' } });
}

/** Classifies an answer without an order. Undefined if the platform says that there is none. */
function classifyAnswer(
  { status: httpStatus, errors, data, headers }: ClientError['response'],
  readErrors: (errors: unknown) => CodedError[],
): undefined {
  if (httpStatus >= 300 && httpStatus < 400) {
    const cause = { code: 'platform_redirects', httpStatus } as const;
    throw new NeedsOperator(describeCause(cause), { httpStatus, cause });
  }
  const judgement = judgeErrors({ status: httpStatus, data, errors: readErrors(errors) });
  if (judgement === 'missing') return undefined;
  if (judgement === 'refused') {
    const cause = { code: 'platform_refuses_us', httpStatus } as const;
    throw new NeedsOperator(describeCause(cause), { httpStatus, cause });
  }
  if (judgement === 'id invalid') {
    const cause = { code: 'order_id_invalid', httpStatus } as const;
    throw new GiveUp(describeCause(cause), { reason: 'the order could not be read', httpStatus, cause });
  }
  throw new TryAgain(`the ordering platform answered ${httpStatus}${errors ? ' with GraphQL errors' : ''}`, {
    sent: false,
    httpStatus,
    retryAfterMs: parseRetryAfter(headers),
    cause: { code: 'platform_failing', httpStatus },
  });
}
