import { fileURLToPath } from 'node:url';
import type { ClientError, GraphQLClient } from 'graphql-request';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { wordOf } from '../domain/member-text.ts';
import { classifyError, parseRetryAfter } from '../domain/classify-error.ts';
import type { OrderInput, OrderModule, PlatformError } from '../domain/order-module.ts';
import { hasValue } from './placement-sql.ts';
import { AnswerTooLarge, boundedFetch, describeFailure } from '../egress/bounded-fetch.ts';

/** The folders of our helper functions for mappers. Source maps put these paths into a bundle's stack traces too. */
const OURS = ['platform/', 'core/domain/'].map((each) =>
  fileURLToPath(new URL(`../../../src/${each}`, import.meta.url)),
);
/** A package that our functions call. */
const PHONES = '/node_modules/libphonenumber-js/';

/**
 * Runs a function of an order module.
 * @throws NeedsOperator for any error, with the error's class, code, field and line. The error's message is dropped,
 *   because it may contain member data.
 */
export function askMapper<Answer>(run: () => Answer): Answer {
  try {
    return run();
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

/**
 * Maps GraphQL's `data`. @returns null if the platform has no such order
 * @throws GiveUp with the cause `order_skipped` if the mapper called `skip`; NeedsOperator if it threw
 */
export function mapOrder(module: Pick<OrderModule, 'toCanonicalOrder'>, data: unknown): OrderInput | null {
  const mapped = askMapper(() => module.toCanonicalOrder(data));
  // An order that happens to have a field with this name is no answer of `skip`.
  if (!isSkipped(mapped)) return mapped;
  const cause = { code: 'order_skipped', reason: wordOf(mapped.skipped) } as const;
  throw new GiveUp(describeCause(cause), { reason: 'the order is not for us', cause });
}

function isSkipped(mapped: unknown): mapped is { skipped: string } {
  if (mapped === null || typeof mapped !== 'object' || Object.keys(mapped).length !== 1) return false;
  return 'skipped' in mapped && typeof mapped.skipped === 'string';
}

/** Returns where the module threw: `map-order.ts:42 (called at line 60)`, for a helper of its own. Skips our functions. */
function placeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined;
  // Skip the message at the start of the stack, because a part of it may look like a stack line.
  const calls = error.stack.slice(error.stack.indexOf(error.message) + error.message.length);
  let first: { path: string; place: string } | undefined;
  for (const [, path = '', line = ''] of calls.matchAll(/^ +at [^/\n]*(\/[^()\n]+):(\d+):\d+\)?$/gm)) {
    if ([...OURS, PHONES].some((each) => path.includes(each))) continue;
    const place = `${path.split('/').at(-1)}:${line}`;
    if (first !== undefined) return first.path === path ? `${first.place} (called at line ${line})` : first.place;
    if (!/^[\w.:-]{1,100}$/.test(place)) return undefined;
    first = { path, place };
  }
  return first?.place;
}

/** A platform error and the code by which it is classified. */
export type CodedError = { error: PlatformError; code: string | undefined };

/**
 * Makes a function that reads the `errors` of a GraphQL response. The function accepts any value, even a malformed one.
 * @param warn called the first time that the module's `errorCode` throws. The platform's own code is used instead
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
        warn(`${describeCause(classifyError(thrown).cause)}: the platform's own error codes are used instead`);
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

/** What a response with errors or a status other than 200 means for the requested order. */
type Judgement = 'missing' | 'refused' | 'id invalid' | 'failing';

/** @param answer.data GraphQL's `data`, used to locate errors in nested fields */
export function judgeErrors(answer: { status: number; data: unknown; errors: readonly CodedError[] }): Judgement {
  const { status, data, errors } = answer;
  const codes = errors.filter(({ error }) => isAboutOrder(error.path, data)).map(({ code }) => code);
  if (codes.includes('NOT_FOUND')) return 'missing';
  // If the platform refuses us one field, it refuses that field at every retry, so the order counts as refused.
  const isRefusal = errors.some(({ code }) => code === 'UNAUTHENTICATED' || code === 'FORBIDDEN');
  if (isRefusal || status === 401 || status === 403) return 'refused';
  return codes.includes('BAD_USER_INPUT') ? 'id invalid' : 'failing';
}

/** True if the error is about the order itself, and not about a nested field such as a menu item. */
function isAboutOrder(path: unknown, data: unknown): boolean {
  return !Array.isArray(path) || (!hasValue(data) && (path.length === 1 || isNullAt(data, path)));
}

/** True if the field at the error's path is null. False if GraphQL made a parent null: the field is not nullable. */
function isNullAt(data: unknown, path: readonly unknown[]): boolean {
  let value = data;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return false;
    value = (value as Record<string, unknown>)[String(key)];
  }
  return value === null;
}

/** Fetches one order. @returns GraphQL's `data`, or undefined if the platform does not have the order (yet) */
type FetchOrderData = (serviceOrderId: string) => Promise<unknown>;

const ORDER_TIMEOUT_MS = 8_000;
/** Maximum size of one order in bytes. An order of 300 items with all their details is below 1 MiB. */
const ORDER_LIMIT = 4 * 2 ** 20;

/**
 * Makes a function that fetches one order and throws only TryAgain, NeedsOperator or GiveUp. The errors of the GraphQL
 * client are not passed on, because their messages contain the whole response and therefore member data.
 */
export function orderDataFetcher(about: {
  url: string;
  token: string | undefined;
  module: Omit<OrderModule, 'toCanonicalOrder'>;
  /** Called once if the module's `errorCode` throws. */
  warn: (problem: string) => void;
  /** Called with the errors of a response. */
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
        signal: AbortSignal.timeout(ORDER_TIMEOUT_MS),
      });
      return hasValue(data) ? data : undefined;
    } catch (error) {
      if (!(error instanceof ClientError)) throw noAnswer(error as Error, url);
      return classifyAnswer(error.response, (errors) => {
        const coded = readErrors(errors);
        onErrors?.(coded);
        return coded;
      });
    }
  };
}

/** Loads the GraphQL client on first use, because loading it blocks the event loop for some 40 ms. */
export const loadGraphqlRequest = (): Promise<typeof import('graphql-request')> => import('graphql-request');

export function headersOf(module: Pick<OrderModule, 'headers'>, token: string | undefined): Record<string, string> {
  return module.headers?.(token) ?? (token === undefined ? {} : { authorization: `Bearer ${token}` });
}

/** @throws any error of the module's function */
export function variablesOf(module: Pick<OrderModule, 'variables'>, orderId: string): Record<string, unknown> {
  return module.variables?.(orderId) ?? { id: orderId };
}

function noAnswer(error: Error, url: string): NeedsOperator | TryAgain {
  if (error instanceof AnswerTooLarge) {
    const cause = { code: 'platform_answer_too_large' } as const;
    return new NeedsOperator(describeCause(cause), { cause });
  }
  const cause = { code: 'platform_unreachable' } as const;
  // The client's own errors, which have no cause, are about an answer that it cannot read.
  const isAnswered = error.cause === undefined && error.name !== 'TimeoutError';
  const why = isAnswered ? 'its answer is not GraphQL' : describeFailure(error, ORDER_TIMEOUT_MS);
  return new TryAgain(`${describeCause(cause)}. ${new URL(url).host}: ${why}`, { sent: false, cause });
}

/** Returns undefined if the response reports that the order does not exist. Throws the matching error otherwise. */
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
