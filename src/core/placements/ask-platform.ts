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
  about: { query: string; variables: Record<string, unknown>; limit: number; signal: AbortSignal },
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
  const { query, variables, signal } = about;
  await client.rawRequest({ query, variables, signal }).catch((error: unknown) => {
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
  /** The platform refuses us fields inside the order. */
  | 'field refused'
  /** The query does not fit the platform's schema, or is too new for it. */
  | 'query refused'
  | 'id invalid'
  | 'failing'
  | 'unreadable';

/** A judgement, and the words of our own query that it is about. No other words of an answer may be shown. */
export type Verdict = { judgement: Judgement; errors: readonly CodedError[]; fields: string[] };

/**
 * Makes a function that judges answers. The service and the doctor judge by it, so that they cannot disagree.
 * @param module without a query for `fetchOrder`
 * @param warn called the first time that the module's `errorCode` throws
 */
export function answerJudge(
  module: Pick<OrderModule, 'errorCode' | 'query'>,
  warn: (problem: string) => void,
): (answer: PlatformAnswer) => Verdict {
  const readErrors = errorReader(module, warn);
  const words = wordsOf(module.query ?? '');
  return (answer) => {
    const errors = readErrors(answer.errors);
    const judgement = judge(answer, errors, words);
    const said = errors.map((each) => {
      if (judgement === 'field refused' && isRefusal(each)) return words.pathOf(each.error);
      return judgement === 'query refused' ? words.at(each.error) : undefined;
    });
    const fields = [...new Set(said)].filter((each) => each !== undefined).slice(0, FIELDS_MAX);
    return { judgement, errors, fields };
  };
}

function judge(
  { status, data, isReadable, errors: all }: PlatformAnswer,
  errors: readonly CodedError[],
  words: ReturnType<typeof wordsOf>,
): Judgement {
  if (status >= 300 && status < 400) return 'redirected';
  const codes = errors.filter(({ error }) => isAboutOrder(error.path, data)).map(({ code }) => code);
  if (codes.includes('NOT_FOUND')) return 'missing';
  // If the platform refuses us one field, it refuses that field at every retry, so the order is held.
  const refusals = errors.filter(isRefusal);
  // The platform has found the order, and refuses what is in it. So the token is good, whatever the status is.
  // guard: refused-field
  if (refusals.length > 0 && refusals.every(({ error }) => words.isInOrder(error))) return 'field refused';
  const isRefused = refusals.length > 0 || status === 401 || status === 403;
  // A platform that answers the query and names what it refuses may answer for other orders.
  // guard: refused-alone
  const isAlone = status === 200 && refusals.every(({ code, error }) => code === 'FORBIDDEN' && hasPath(error));
  if (isRefused) return isAlone ? 'order refused' : 'refused';
  if (codes.includes('BAD_USER_INPUT')) return 'id invalid';
  if (status === 429 || status >= 500) return 'failing';
  if (!isReadable) return 'unreadable';
  // Without data, since nothing of a query is executed that does not fit.
  // guard: query-refused
  if (!hasValue(data) && errors.some(isAboutQuery)) return 'query refused';
  return all.length > 0 || status >= 400 ? 'failing' : 'answered';
}

const isRefusal = ({ code }: CodedError): boolean => code === 'UNAUTHENTICATED' || code === 'FORBIDDEN';

/** True if the answer says that our credentials are missing or too old: new ones may help. */
export function isUnauthenticated(status: number, errors: readonly CodedError[]): boolean {
  return status === 401 || errors.some(({ code }) => code === 'UNAUTHENTICATED');
}

/**
 * Codes of errors about the query itself: of Apollo Server, GraphQL Yoga and gqlgen, of graphql-ruby (Shopify, GitHub),
 * and of Hasura.
 */
const QUERY_CODES = new Set<string | undefined>(
  (
    'GRAPHQL_VALIDATION_FAILED GRAPHQL_PARSE_FAILED undefinedField undefinedType argumentNotAccepted ' +
    'missingRequiredArguments selectionMismatch variableMismatch validation-failed'
  ).split(' '),
);
/**
 * The same of servers without codes: graphql-js, and by its texts Graphene (Saleor), Absinthe, PostGraphile, graphql-dotnet
 * and others; async-graphql; graphql-java. Hot Chocolate names the section of the specification.
 */
const QUERY_WORDS =
  /^(Cannot query field |Unknown (argument|directive|field|fragment|type) |Field ["']\w+["'] (of type|argument) |Variable "\$\w+" of type |Syntax Error\b|Validation error (\(|of type )\w)/;

/** All of `ErrorCode`. */
export const OUR_CODES = new Set<string | null | undefined>(
  'NOT_FOUND UNAUTHENTICATED FORBIDDEN BAD_USER_INPUT INTERNAL_SERVER_ERROR'.split(' '),
);

/** Accepts any values, even malformed ones. A code of ours, which the module may have given, decides alone. */
function isAboutQuery({ error: { message, extensions }, code }: CodedError): boolean {
  if (QUERY_CODES.has(code)) return true;
  if (OUR_CODES.has(code)) return false;
  const section = extensions?.['specifiedBy'];
  return (
    (typeof message === 'string' && QUERY_WORDS.test(message)) ||
    (typeof section === 'string' && /^https?:\/\/spec\.graphql\.org\/\w+\/#sec-/.test(section))
  );
}

const FIELDS_MAX = 5;
const PATH_MAX = 200;

/** What errors say in words of our query. Its other words may be member data, even in a path: keys of a custom scalar. */
function wordsOf(query: string) {
  const known = new Set(query.match(/\w{1,64}/g));
  const lines = query.split('\n').length;
  /** The response keys of the fields that take a variable, such as the order's id. */
  const byId = new Set<unknown>();
  const parts = query.slice(query.indexOf('{')).split('(');
  for (const [nth, before] of parts.entries()) {
    const names = before.match(/\w+|:/g) ?? [];
    const isGiven = parts[nth + 1]?.split(')', 1)[0]?.includes('$') === true;
    if (isGiven) byId.add(names.at(names.at(-2) === ':' ? -3 : -1));
  }
  return {
    /** False if the error is about the order, about what leads to it, or about a field elsewhere in the query. */
    isInOrder({ path }: PlatformError): boolean {
      return Array.isArray(path) && path.slice(0, -1).some((key) => byId.has(key));
    },
    /** Such as `order.lines.*.customerGroup`. */
    pathOf({ path }: PlatformError): string | undefined {
      if (!Array.isArray(path)) return undefined;
      // guard: own-words
      const own = path.map((key) => (typeof key === 'number' ? '*' : known.has(key) ? key : '?'));
      return own.join('.').slice(0, PATH_MAX);
    },
    /** Such as `customerGroup (line 4)`: the first word of our query that the error quotes. */
    at({ message, ...error }: PlatformError): string | undefined {
      const text = typeof message === 'string' ? message : '';
      const quoted = Array.from(text.matchAll(/["'`]\$?(\w{1,64})["'`]/g), ([, word = '']) => word);
      const [place] = (Array.isArray(error.locations) ? error.locations : []) as unknown[];
      const line = isObject(place) ? place['line'] : undefined;
      const isLine = typeof line === 'number' && Number.isInteger(line) && line > 0 && line <= lines;
      const word = quoted.find((each) => known.has(each));
      return word !== undefined && isLine ? `${word} (line ${line})` : word;
    },
  };
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
    if (typeof value !== 'object' || value === null || (typeof key !== 'string' && typeof key !== 'number'))
      return false;
    value = (value as Record<string | number, unknown>)[key];
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
