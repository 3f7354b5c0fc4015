import { hasCredentials } from '../domain/has-credentials.ts';
import { isObject } from '../domain/json-text.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { describeCause } from '../domain/explain-cause.ts';
import { parseRetryAfter } from '../domain/classify-error.ts';
import {
  OrderError,
  type FetchContext,
  type FetchModule,
  type OrderInput,
  type OrderModule,
  type QueryModule,
} from '../domain/order-module.ts';
import { AnswerTooLarge, boundedFetch, describeFailure } from '../egress/bounded-fetch.ts';
import { askMapper, mapOrder, misuse, runModule, type CancelledInput } from './ask-mapper.ts';
import {
  answerJudge,
  askPlatform,
  type CodedError,
  hasValue,
  isUnauthenticated,
  type Judgement,
  type PlatformAnswer,
} from './ask-platform.ts';
import { type Credentials, headerKeeper, ORDER_TIMEOUT_MS, type PlatformHeaders } from './platform-headers.ts';

/** @returns the order as the module maps it, or null if the platform does not have it (yet) */
type FetchOrder = (serviceOrderId: string) => Promise<OrderInput | CancelledInput | null>;

/** Fetches what the module's `toCanonicalOrder` gets. `deadline` is aborted when the time is over. */
type FetchData = (serviceOrderId: string, headers: PlatformHeaders, deadline: AbortSignal) => Promise<Fetched>;

type Fetched = {
  data?: unknown;
  /** The first error of `context.fetch`, if the module caught it, or what the errors of a GraphQL answer mean. */
  failure?: Failure | undefined;
  /** Such a GraphQL answer has gaps: only the module's `cancelled` gets it. */
  isPartial?: boolean;
  /** The platform does not accept our headers (any longer). */
  isUnauthenticated?: boolean;
};

type Failure = NeedsOperator | GiveUp | TryAgain;

/** A request of `fetchOrder`. `answer` is set when the platform answers. */
export type RequestOfModule = { method: string; path: string; answer?: { status: number; headers: Headers } };

type About<Module> = Credentials & {
  url: string;
  module: Module;
  /** Called once if the module's `errorCode` throws. */
  warn: (problem: string) => void;
  /** Called with the errors of a GraphQL answer. */
  onErrors?: (errors: readonly CodedError[]) => void;
  /** Called before each request of `fetchOrder`. */
  onRequest?: (request: RequestOfModule) => void;
};

/** Maximum size of one order in bytes. An order of 300 items with all their details is below 1 MiB. */
const ORDER_LIMIT = 4 * 2 ** 20;
/** Maximum number of requests of `fetchOrder` for one order. */
const REQUESTS_MAX = 20;

const NO_ANSWER: PlatformAnswer = {
  status: 200,
  headers: new Headers(),
  isReadable: true,
  data: undefined,
  errors: [],
};

/** Makes a function that fetches and maps one order, and throws only TryAgain, NeedsOperator or GiveUp. */
export function orderFetcher({ module, ...about }: About<OrderModule>): FetchOrder {
  const fetchData =
    module.fetchOrder === undefined ? dataQuerier({ ...about, module }) : dataFetcher({ ...about, module });
  const fetchWithHeaders = withHeaders(fetchData, headerKeeper(module, about));
  return async (serviceOrderId) => {
    const { data, failure, isPartial = false } = await fetchWithHeaders(serviceOrderId);
    // guard: partial-is-no-order
    const mapper = isPartial ? { ...module, toCanonicalOrder: () => null } : module;
    try {
      const order = isPartial || hasValue(data) ? mapOrder(mapper, data, serviceOrderId) : null;
      if (order !== null || failure === undefined) return order;
    } catch (error) {
      if (failure === undefined) throw error;
    }
    // "No such order", `skip` or an error of the mapper may come from what the platform did not answer.
    // guard: failure-decides
    throw failure;
  };
}

/** Fetches once more if the platform refused the headers, and there are others now. */
function withHeaders(fetchData: FetchData, headers: ReturnType<typeof headerKeeper>) {
  return async (serviceOrderId: string): Promise<Fetched> => {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(new DOMException('', 'TimeoutError')), ORDER_TIMEOUT_MS);
    const { signal } = deadline;
    try {
      const used = await headers.get(signal);
      const fetched = await fetchData(serviceOrderId, used, signal);
      if (fetched.isUnauthenticated !== true || signal.aborted) return fetched;
      // guard: headers-renewed
      const renewed = await headers.renew(used, signal);
      return renewed === undefined ? fetched : await fetchData(serviceOrderId, renewed, signal);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** The errors of the GraphQL client are not passed on, because their messages contain the whole response. */
function dataQuerier({ url, module, warn, onErrors }: About<QueryModule>): FetchData {
  const judge = answerJudge(module, warn);
  return async (serviceOrderId, headers, signal) => {
    const variables = askMapper(() => variablesOf(module, serviceOrderId));
    const query = { query: module.query, variables, limit: ORDER_LIMIT, signal };
    const answer = await askPlatform({ url, headers }, query).catch((error: unknown) => {
      throw noAnswer(error, url);
    });
    const { judgement, errors, fields } = judge(answer);
    onErrors?.(errors);
    if (judgement === 'answered') return { data: answer.data };
    if (judgement === 'missing') return {};
    const failure = failureOf(judgement, answer, 'GraphQL', fields);
    const data = module.cancelled && withGaps(answer);
    return {
      data,
      failure,
      isPartial: data !== undefined,
      isUnauthenticated: isUnauthenticated(answer.status, errors),
    };
  };
}

/**
 * Makes each field throw that an error of the answer is about, so that a module cannot take its null for a value.
 * @returns the data, or undefined if there is no order or an error does not name its field
 */
function withGaps({ data, errors }: PlatformAnswer): unknown {
  const makeGap = (parent: unknown, [key, ...rest]: readonly unknown[]): boolean => {
    if (!isObject(parent) || (typeof key !== 'string' && typeof key !== 'number')) return false;
    const { value, get } = Object.getOwnPropertyDescriptor(parent, key) ?? {};
    if (get !== undefined) return true;
    if (value !== null) return makeGap(value, rest);
    // guard: null-of-an-error
    Object.defineProperty(parent, key, { get: unanswered });
    return true;
  };
  const paths = errors.map((error) => (isObject(error) ? error['path'] : undefined));
  return hasValue(data) && paths.length > 0 && paths.every((path) => Array.isArray(path) && makeGap(data, path))
    ? data
    : undefined;
}

function unanswered(): never {
  throw new TypeError('the platform did not answer this field');
}

function dataFetcher(about: About<FetchModule>): FetchData {
  const judge = answerJudge({}, about.warn);
  return async (orderId, headers, deadline) => {
    // In a path it leads to another resource, also percent-encoded.
    // guard: id-is-no-path
    if (orderId === '.' || orderId === '..') throw failureOf('id invalid', NO_ANSWER, 'JSON');
    const { context, seen, end } = fetchContext(about, headers, judge);
    const { promise: timedOut, reject } = Promise.withResolvers<never>();
    const endLate = (): void => {
      seen.failure ??= noAnswer(deadline.reason, about.url);
      reject(seen.failure);
      end();
    };
    if (deadline.aborted) throw noAnswer(deadline.reason, about.url);
    deadline.addEventListener('abort', endLate, { once: true });
    try {
      const data = await Promise.race([runModule(() => about.module.fetchOrder(orderId, context)), timedOut]);
      // guard: forgot-to-return
      if (seen.failure === undefined) refuseForgotten(data);
      return { ...seen, data };
    } catch (error) {
      if (seen.failure !== undefined) return seen;
      if (!(error instanceof OrderError)) {
        return askMapper(() => {
          throw error;
        });
      }
      // It is judged like a GraphQL error about the order. The module knows better than the status.
      const answer = { ...seen.answer, errors: [{ path: ['order'], extensions: { code: error.code } }] };
      const { judgement, errors } = judge({ ...answer, status: 200 });
      if (judgement === 'missing' || judgement === 'answered') return {};
      return { failure: failureOf(judgement, answer, 'JSON'), isUnauthenticated: isUnauthenticated(200, errors) };
    } finally {
      deadline.removeEventListener('abort', endLate);
      end();
    }
  };
}

/** Refuses what a forgotten `return` or `await` gives: the order would be missing, and fail. @throws NeedsOperator */
function refuseForgotten(data: unknown): void {
  if (data === undefined) throw misuse('returned_undefined', 'returned undefined. For no such order, return null');
  if (isObject(data) && typeof data['json'] === 'function') {
    throw misuse('returned_answer', 'returned an answer of fetch. Return await answer.json()');
  }
}

/** Makes what `fetchOrder` gets for one order. `seen` is what it has met, `end` ends its requests. */
function fetchContext(
  { url, onRequest }: Pick<About<FetchModule>, 'url' | 'onRequest'>,
  ourHeaders: PlatformHeaders,
  judge: ReturnType<typeof answerJudge>,
) {
  const ended = new AbortController();
  const send = boundedFetch(ORDER_LIMIT);
  const seen: { answer: PlatformAnswer; failure?: Failure; isUnauthenticated: boolean } = {
    answer: NO_ANSWER,
    isUnauthenticated: false,
  };
  let requests = 0;
  /** Remembers the first failure. A promise that the module does not wait for must not end the process. */
  const noted = <Given extends unknown[], Made>(run: (...given: Given) => Promise<Made>) => {
    return (...given: Given): Promise<Made> => {
      const made = run(...given);
      made.catch((error: unknown) => {
        if (error instanceof TryAgain || error instanceof NeedsOperator) seen.failure ??= error;
      });
      return made;
    };
  };
  const noAnswerTo = (error: unknown): never => {
    throw noAnswer(error, url);
  };
  const ask: FetchContext['fetch'] = async (target, { method = 'GET', headers, body, expect = [] } = {}) => {
    requests += 1;
    if (requests > REQUESTS_MAX) {
      throw misuse('too_many_requests', `makes more than ${REQUESTS_MAX} requests for one order`);
    }
    const address = addressOf(target, url);
    const all = new Headers({ accept: 'application/json', ...headers });
    for (const [name, value] of Object.entries(ourHeaders)) all.set(name, value);
    const request = new Request(address, { method, headers: all, ...(body !== undefined && { body }) });
    const made: RequestOfModule = { method, path: address.pathname };
    onRequest?.(made);
    const response = await send(request, { signal: ended.signal }).catch(noAnswerTo);
    const { status, ok } = response;
    const answer: PlatformAnswer = { ...seen.answer, status, headers: response.headers };
    made.answer = answer;
    const { judgement } = judge(answer);
    seen.isUnauthenticated ||= isUnauthenticated(status, []);
    const isOfOrder = status >= 400 && status < 500 && status !== 401 && status !== 429;
    const isForModule = isOfOrder && [404, 410, ...expect].includes(status);
    if (judgement !== 'answered' && judgement !== 'missing' && !isForModule) {
      response.body?.cancel().catch(() => {});
      throw failureOf(judgement, answer, 'JSON');
    }
    seen.answer = answer;
    const text = await response.text().catch(noAnswerTo);
    const json = async (): Promise<unknown> => {
      try {
        return JSON.parse(text);
      } catch {
        throw failureOf('unreadable', answer, 'JSON');
      }
    };
    return { status, ok, headers: response.headers, text: async () => text, json: noted(json) };
  };
  return { context: { fetch: noted(ask), signal: ended.signal }, seen, end: () => ended.abort() };
}

/**
 * Checks where `fetchOrder` sends the token. A target may come from an answer, such as the link to the next page, or
 * contain the order's id. URL parsing removes tabs and line breaks, and at both ends blanks and control characters, and
 * reads a backslash as a slash.
 * @see https://url.spec.whatwg.org/#concept-basic-url-parser
 * @throws NeedsOperator
 */
function addressOf(target: unknown, url: string): URL {
  if (typeof target !== 'string' && !(target instanceof URL)) {
    throw misuse('not_a_url', `asks for ${target === null ? 'null' : typeof target}, not for a path or a URL`);
  }
  const text = String(target).replaceAll(/[\t\n\r]/g, '');
  const address = URL.parse(text, url);
  if (address === null) throw misuse('not_a_url', 'asks for a text that is not a path or a URL');
  const { protocol, host } = new URL(url);
  // The origin of `blob:` is that of the URL in it, so protocol and host are compared.
  // guard: own-origin
  const isOwn = address.protocol === protocol && address.host === host && !hasCredentials(address);
  if (!isOwn) throw misuse('other_origin', 'asks for a URL of another origin than ORDER_API_URL, so nothing was sent');
  const [path = ''] = text.replaceAll(/[\p{Cc} ]/gu, '').split(/[?#]/, 1);
  // guard: no-dots-in-path
  if (/(^|[/\\])(\.|%2e){1,2}([/\\]|$)/i.test(path)) {
    throw misuse('dots_in_path', 'asks for a path with "." or "..", by which an order id may lead to another resource');
  }
  return address;
}

/** @throws any error of the module's function */
export function variablesOf(module: Pick<QueryModule, 'variables'>, orderId: string): Record<string, unknown> {
  return module.variables?.(orderId) ?? { id: orderId };
}

function noAnswer(error: unknown, url: string): NeedsOperator | TryAgain {
  if (error instanceof AnswerTooLarge) {
    const cause = { code: 'platform_answer_too_large' } as const;
    return new NeedsOperator(describeCause(cause), { cause });
  }
  const cause = { code: 'platform_unreachable' } as const;
  const why = describeFailure(error, ORDER_TIMEOUT_MS);
  return new TryAgain(`${describeCause(cause)}. ${new URL(url).host}: ${why}`, { sent: false, cause });
}

/** The error that says what an answer without an order means for the order. */
function failureOf(
  judgement: Exclude<Judgement, 'answered' | 'missing'>,
  { status: httpStatus, headers, errors }: PlatformAnswer,
  format: 'GraphQL' | 'JSON',
  fields: string[] = [],
): Failure {
  if (judgement === 'id invalid') {
    const cause = { code: 'order_id_invalid', httpStatus } as const;
    return new GiveUp(describeCause(cause), { reason: 'the order could not be read', httpStatus, cause });
  }
  if (judgement === 'failing' || judgement === 'unreadable') {
    const isOther = judgement === 'unreadable' && httpStatus < 300;
    const what = isOther ? `, but not in ${format}` : errors.length > 0 ? ' with errors' : '';
    const retryAfterMs = parseRetryAfter(headers);
    const cause = { code: 'platform_failing', httpStatus } as const;
    const problem = `the ordering platform answered ${httpStatus}${what}`;
    return new TryAgain(problem, { sent: false, httpStatus, retryAfterMs, cause });
  }
  const cause =
    judgement === 'field refused' || judgement === 'query refused'
      ? ({ code: REFUSALS[judgement], fields, httpStatus } as const)
      : ({ code: REFUSALS[judgement], httpStatus } as const);
  return new NeedsOperator(describeCause(cause), { httpStatus, cause });
}

const REFUSALS = {
  redirected: 'platform_redirects',
  refused: 'platform_refuses_us',
  'order refused': 'platform_refuses_order',
  'field refused': 'platform_refuses_field',
  'query refused': 'platform_refuses_query',
} as const;
