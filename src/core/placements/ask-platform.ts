import { isObject, jsonIn } from '../domain/json-text.ts';
import { describeCause } from '../domain/explain-cause.ts';
import { classifyError } from '../domain/classify-error.ts';
import type { OrderModule, PlatformError } from '../domain/order-module.ts';
import { boundedFetch } from '../egress/bounded-fetch.ts';
import { askMapper } from './ask-mapper.ts';

/** The ordering platform's answer to a query, or to a request of `fetchOrder`. */
export type PlatformAnswer = {
  status: number;
  headers: Headers;
  /** False if the body is no JSON object with `data` or `errors`, or if `fetchOrder` finds no JSON in it. */
  isReadable: boolean;
  /** GraphQL's `data`, undefined if it is absent. */
  data: unknown;
  /** GraphQL's `errors`, which may be malformed. Empty if there are none. */
  errors: readonly unknown[];
};

/**
 * Sends one query and follows no redirect. The service and the doctor read answers by it. What only differs in form is
 * read: any content type, and `errors` or `extensions` that are null.
 * @param about.limit maximum size of the answer in bytes
 * @throws the errors of fetch, and AnswerTooLarge. None of them quotes the answer
 */
export async function askPlatform(
  { url, headers }: { url: string; headers: Record<string, string> },
  about: { query: string; variables: Record<string, unknown>; limit: number; timeoutMs: number },
): Promise<PlatformAnswer> {
  const { ClientError, GraphQLClient } = await loadGraphqlRequest();
  const send = boundedFetch(about.limit);
  const seen: { status: number; headers: Headers; body?: Body } = { status: 0, headers: new Headers() };
  const client = new GraphQLClient(url, {
    headers,
    errorPolicy: 'all',
    fetch: async (input, init) => {
      const answer = await send(input, init);
      Object.assign(seen, { status: answer.status, headers: answer.headers });
      // The client parses no body of another type.
      return new Response(answer.body, { status: answer.status, headers: { 'content-type': 'application/json' } });
    },
    jsonSerializer: {
      stringify: JSON.stringify,
      parse: (text: string) => (seen.body = readBody(text)),
    },
  });
  const signal = AbortSignal.timeout(about.timeoutMs);
  await client.rawRequest({ query: about.query, variables: about.variables, signal }).catch((error: unknown) => {
    // The client makes errors of answers too. They are judged here, by what was read.
    const isAnswered = seen.body !== undefined || error instanceof ClientError || error instanceof NotGraphql;
    if (!isAnswered) throw error;
  });
  const { data, errors = [] } = seen.body ?? {};
  return { status: seen.status, headers: seen.headers, isReadable: seen.body !== undefined, data, errors };
}

/** Loads the GraphQL client on first use, because loading it blocks the event loop for some 40 ms. */
export const loadGraphqlRequest = (): Promise<typeof import('graphql-request')> => import('graphql-request');

/** The body of an answer is not GraphQL. */
class NotGraphql extends Error {
  override readonly name = 'NotGraphql';
}

type Body = { data?: unknown; errors?: unknown[] };

/** @throws NotGraphql */
function readBody(text: string): Body {
  const { data, errors } = (jsonIn(text) ?? {}) as { data?: unknown; errors?: unknown };
  const all = Array.isArray(errors) ? errors : hasValue(errors) ? [errors] : [];
  const isData = data === undefined ? all.length > 0 : typeof data === 'object' && !Array.isArray(data);
  if (!isData) throw new NotGraphql();
  return { ...(data !== undefined && { data }), ...(all.length > 0 && { errors: all }) };
}

/** A platform error and the code by which it is classified. */
export type CodedError = { error: PlatformError; code: string | undefined };

/**
 * Makes a function that reads the `errors` of an answer. The function accepts any values, even malformed ones.
 * @param warn called the first time that the module's `errorCode` throws. The platform's own code is used instead
 */
function errorReader(
  module: Pick<OrderModule, 'errorCode'>,
  warn: (problem: string) => void,
): (errors: readonly unknown[]) => CodedError[] {
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
    errors
      .filter((error): error is PlatformError => isObject(error))
      .map((error) => {
        const code = [translate(error), error.extensions?.['code']].find((each) => typeof each === 'string');
        return { error, code };
      });
}

/** What an answer means for the requested order. */
export type Judgement =
  | 'answered'
  | 'missing'
  | 'redirected'
  /** The platform refuses us every order. */
  | 'refused'
  | 'order refused'
  | 'id invalid'
  | 'failing'
  | 'unreadable';

/**
 * Makes a function that judges answers. The service and the doctor judge by it, so that they cannot disagree.
 * @param warn called the first time that the module's `errorCode` throws
 */
export function answerJudge(
  module: Pick<OrderModule, 'errorCode'>,
  warn: (problem: string) => void,
): (answer: PlatformAnswer) => { judgement: Judgement; errors: readonly CodedError[] } {
  const readErrors = errorReader(module, warn);
  return (answer) => {
    const errors = readErrors(answer.errors);
    return { judgement: judge(answer, errors), errors };
  };
}

function judge({ status, data, isReadable, errors: all }: PlatformAnswer, errors: readonly CodedError[]): Judgement {
  if (status >= 300 && status < 400) return 'redirected';
  const codes = errors.filter(({ error }) => isAboutOrder(error.path, data)).map(({ code }) => code);
  if (codes.includes('NOT_FOUND')) return 'missing';
  // If the platform refuses us one field, it refuses that field at every retry, so the order counts as refused.
  const refusals = errors.filter(({ code }) => code === 'UNAUTHENTICATED' || code === 'FORBIDDEN');
  const isRefusal = refusals.length > 0 || status === 401 || status === 403;
  // A platform that answers the query and names what it refuses may answer for other orders.
  // guard: refused-alone
  const isAlone = status === 200 && refusals.every(({ code, error }) => code === 'FORBIDDEN' && hasPath(error));
  if (isRefusal) return isAlone ? 'order refused' : 'refused';
  if (codes.includes('BAD_USER_INPUT')) return 'id invalid';
  if (status === 429 || status >= 500) return 'failing';
  if (!isReadable) return 'unreadable';
  return all.length > 0 || status >= 400 ? 'failing' : 'answered';
}

function hasPath({ path }: PlatformError): boolean {
  return Array.isArray(path) && path.length > 0;
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

/** False for null, for an empty list, and for a list or object of only these and `__typename`. True for `{}`. */
export function hasValue(value: unknown): boolean {
  if (value === null || value === undefined) return false;
  if (Array.isArray(value)) return value.some(hasValue);
  if (typeof value !== 'object') return true;
  const fields = Object.entries(value);
  return fields.length === 0 || fields.some(([key, field]) => key !== '__typename' && hasValue(field));
}
