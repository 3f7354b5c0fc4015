import { NeedsOperator, TryAgain } from '../core/domain/errors.ts';
import { isObject, jsonIn } from '../core/domain/json-text.ts';
import { liveProcesses } from '../core/domain/live-processes.ts';
import type { PosContext } from '../core/domain/provider.ts';
import { parseRetryAfter } from '../core/domain/classify-error.ts';

/** One request to a POS. `body` is sent unchanged; set its `content-type` in `headers`. `json` is written as the body. */
export type PosRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: string;
  /** The path for errors, with names in place of values: `/orders/{id}`. Without it, errors say only the origin. */
  route?: string;
  headers?: Record<string, string>;
  body?: string;
  json?: unknown;
  /** The vendor's own header that tells when a 429's limit ends, in seconds since 1970. `Retry-After` comes first. */
  resetHeader?: string;
  /** The context's signal, which ends the attempt. For a token request, the signal that `obtain` gets. */
  signal: AbortSignal;
  /** Time limit of this request in milliseconds, so that the attempt has time for its other requests. */
  withinMs?: number;
  fetch: PosContext<unknown>['fetch'];
};

/** A POS's answer: a 2xx, or a 4xx whose meaning only the provider knows. */
export type PosAnswer = {
  status: number;
  headers: Headers;
  /**
   * The body as JSON. Undefined if it is empty, not JSON, over 1 MiB or incomplete. The status still counts: a 2xx
   * means that the POS carried out the request.
   */
  json: unknown;
};

/**
 * Calls a POS and classifies every failure by one question: may the POS have taken the order? An error names the request
 * by its method, its origin and its route. It contains no other part of the URL, no credentials, body or member data.
 * @throws TryAgain `sent: false` if nothing was sent, or on 423, 425, 429, 500, 501 and 503, by which the POS reports that it
 *   took nothing. `perhapsTaken` does not believe a 5xx
 * @throws TryAgain `sent: true` if the answer was lost: time-outs, resets, 408, and a gateway's 502, 504 and the like
 * @throws TryAgain `sent: true` also if nothing shows that the POS itself took the order: a 2xx with a page of HTML, and a 409
 *   that is not JSON, which gateways answer too
 * @throws NeedsOperator on 401, 403, invalid settings, a host that `fetch` refuses, a 4xx that only gateways answer or whose
 *   text is not JSON, and a redirect, because following it would turn a POST into a GET or send credentials to another host
 */
export async function callPos(call: PosRequest): Promise<PosAnswer> {
  // guard: named-by-route
  const name = `${call.method} ${URL.parse(call.url)?.origin ?? '(not a URL)'}${call.route ?? '/…'}`;
  if (call.signal.aborted) throw new TryAgain(`${name}: the attempt timed out before this call`, { sent: false });

  const request = buildRequest(call, name);
  const signal =
    call.withinMs === undefined ? call.signal : AbortSignal.any([call.signal, AbortSignal.timeout(call.withinMs)]);
  let response: Response;
  try {
    response = await call.fetch(request, { signal });
  } catch (error) {
    throw faultOf(error, signal, name);
  }

  const refusal = refusalOf(response, call.resetHeader, name);
  if (refusal !== undefined) {
    // A connection cannot be used again while it holds an unread body.
    await response.body?.cancel().catch(() => {});
    throw refusal;
  }
  const { status, headers } = response;
  // A body that breaks off is not JSON, and a 2xx counts without it.
  const text = await response.text().catch(() => 'cut off');
  const parsed = jsonIn(text);
  // A JSON string or number is no POS's answer.
  const json = isObject(parsed) ? parsed : undefined;
  // guard: whose-answer
  const foreign = foreignAnswer({ method: call.method, httpStatus: status, text: text.trim(), json }, name);
  if (foreign !== undefined) throw foreign;
  return { status, headers, json };
}

/** Builds the request. The error of `Request` quotes an invalid URL or header value, so it must not reach a log. */
function buildRequest({ url, method, headers: given, json, body }: PosRequest, name: string): Request {
  const text = json === undefined ? body : JSON.stringify(json);
  try {
    const headers = new Headers(given);
    if (json !== undefined) headers.set('content-type', 'application/json');
    return new Request(url, { method, headers, ...(text !== undefined && { body: text }) });
  } catch {
    throw new NeedsOperator(`${name}: the settings give an invalid URL or header`);
  }
}

/** The route of a path that holds no secret. It has no query, and `{id}` for each part that is not a word of an API. */
export function routeOf(path: string): string {
  const [plain = ''] = path.split('?');
  return plain.replaceAll(/[^/]+/g, (part) => (/^([a-z_-]{1,24}|v?\d)$/i.test(part) ? part : '{id}'));
}

function faultOf(error: unknown, signal: AbortSignal, name: string): Error {
  if (error instanceof NeedsOperator) return error;
  const cause = causeOf(error);
  // fetch refuses the ports that browsers block: https://fetch.spec.whatwg.org/#port-blocking
  if (cause.message === 'bad port') return new NeedsOperator(`${name}: this port is blocked; use another port`);
  if (neverConnected(cause)) return new TryAgain(`${name}: ${cause.code}: no connection`, { sent: false });
  if (signal.aborted) return new TryAgain(`${name}: no answer in time`, { sent: true });
  return new TryAgain(`${name}: ${cause.code ?? 'the connection broke'}: no answer`, { sent: true });
}

type Cause = { code?: string; syscall?: string; message?: string };

/** Returns the network error in fetch's `cause`. For a host with several addresses, it is the last address's error. */
function causeOf(error: unknown): Cause {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return {};
  const last: unknown = cause instanceof AggregateError ? cause.errors.at(-1) : cause;
  return last instanceof Error ? last : cause;
}

/** OpenSSL's certificate errors, and Node's errors for a server that does not speak our TLS. */
const TLS_HANDSHAKE =
  /^(CERT_|CRL_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$|ERR_TLS_CERT_ALTNAME_|ERR_TLS_HANDSHAKE_TIMEOUT$|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE|.*ALERT_HANDSHAKE_FAILURE|.*ALERT_PROTOCOL_VERSION|.*UNRECOGNIZED_NAME)$)/;

/**
 * True only if no byte of the request can have been sent. False for a connection reset, because its code does not show
 * whether the TLS handshake was complete.
 */
function neverConnected(cause: Cause): boolean {
  return (
    cause.syscall === 'connect' ||
    cause.syscall === 'getaddrinfo' ||
    cause.code === 'UND_ERR_CONNECT_TIMEOUT' ||
    TLS_HANDSHAKE.test(cause.code ?? '')
  );
}

function refusalOf(response: Response, resetHeader: string | undefined, name: string): Error | undefined {
  const { status: httpStatus } = response;
  const message = `${name}: the POS answered ${httpStatus}`;
  if (httpStatus >= 300 && httpStatus < 400) return new NeedsOperator(`${message}: the URL is wrong`, { httpStatus });
  if (httpStatus === 401 || httpStatus === 403) return new NeedsOperator(message, { httpStatus });
  if (![408, 423, 425, 429].includes(httpStatus) && httpStatus < 500) return undefined;
  // 423 and 425 say that the same request may be taken later: RFC 4918, RFC 8470.
  const refused = [423, 425, 429, 500, 501, 503].includes(httpStatus);
  // A vendor may send the reset time with any answer, but only a 429 means that the limit is reached.
  const retryAfterMs = parseRetryAfter(response.headers, httpStatus === 429 ? resetHeader : undefined);
  return new TryAgain(message, { sent: !refused, retryAfterMs, httpStatus });
}

/** Statuses by which a gateway speaks for itself, such as Vercel's 402 and nginx's 413: RFC 9110, RFC 6585, RFC 7725. */
const OF_GATEWAYS = new Set([402, 407, 411, 413, 414, 421, 426, 431, 451]);

/**
 * An answer that another server than the POS may have given: a gateway, a parked domain, a page that asks for a log-in. It
 * neither takes an order nor refuses it for good.
 */
function foreignAnswer(
  { method, httpStatus, text, json }: { method: string; httpStatus: number; text: string; json: unknown },
  name: string,
): Error | undefined {
  if (httpStatus < 300) {
    // What a GET shows is read by its shape.
    if (method === 'GET' || !text.startsWith('<')) return undefined;
    const message = `${name}: a page of HTML came with ${httpStatus}, so perhaps the POS did not answer: check the URL`;
    return new TryAgain(message, { sent: true, httpStatus });
  }
  if (json !== undefined || (text === '' && !OF_GATEWAYS.has(httpStatus))) return undefined;
  const message = `${name}: ${httpStatus} came ${text === '' ? 'without a body' : 'with a text that is not JSON'}`;
  return httpStatus === 409
    ? new TryAgain(`${message}, so perhaps the POS has the order`, { sent: true, httpStatus })
    : new NeedsOperator(`${message}: perhaps a gateway answered. Check the URL`, { httpStatus });
}

/**
 * Makes a `.catch` handler that explains a 401 or 403 of `callPos`, whose own error only names the request.
 * @param explain returns the sentence. It must contain no secret, because the operator sees it
 * @returns a function that throws NeedsOperator with the sentence, and rethrows any other error
 */
export function quoteRefusal(
  statuses: readonly (401 | 403)[],
  explain: (httpStatus: number) => string,
): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof NeedsOperator)) throw error;
    const httpStatus = statuses.find((status) => status === error.httpStatus);
    throw httpStatus === undefined ? error : new NeedsOperator(explain(httpStatus), { httpStatus });
  };
}

/** The requests that a vendor allows per window. A window begins at a round time, such as a full minute or hour. */
export type Allowance = { requests: number; seconds: number };

/** Requests made by one caller, such as a connection or a restaurant. */
type Spent = { spans: { began: number; requests: number }[]; closedUntil: number };

/** Maximum number of callers in memory. A process has fewer locations. Above it, the oldest caller is removed. */
const CALLERS = 10_000;

/**
 * Limits the requests of each caller to a POS within this process to its share: it does not see the requests of other
 * processes. If the POS answers 429, this caller's requests are refused until the wait that the POS asked for is over.
 * @param allowances empty if the vendor publishes no limits
 * @returns a function that runs a request at once, or throws TryAgain with `sent: false` and the wait
 */
export function limitRate(
  allowances: readonly Allowance[],
): <Result>(caller: string, now: Date, request: () => Promise<Result>) => Promise<Result> {
  const callers = new Map<string, Spent>();

  const spentBy = (caller: string): Spent => {
    const known = callers.get(caller);
    if (known !== undefined) return known;
    const [oldest] = callers.keys();
    if (callers.size >= CALLERS && oldest !== undefined) callers.delete(oldest);
    const spent: Spent = { spans: allowances.map(() => ({ began: 0, requests: 0 })), closedUntil: 0 };
    callers.set(caller, spent);
    return spent;
  };

  /** @returns milliseconds until a request is allowed. 0 means that the request is allowed, and it is counted */
  const waitBefore = (spent: Spent, at: number): number => {
    const waits = allowances.map(({ requests, seconds }, nth) => {
      const length = seconds * 1000;
      const began = at - (at % length);
      const span = spent.spans[nth];
      if (span === undefined) return 0;
      if (span.began !== began) Object.assign(span, { began, requests: 0 });
      // At least three, because the orders of a quiet location may come to one process.
      // guard: divided-limit
      const share = Math.max(3, Math.floor(requests / liveProcesses.count));
      return span.requests < Math.min(requests, share) ? 0 : began + length - at;
    });
    const wait = Math.max(spent.closedUntil - at, 0, ...waits);
    if (wait === 0) for (const span of spent.spans) span.requests += 1;
    return wait;
  };

  return async (caller, now, request) => {
    const spent = spentBy(caller);
    const retryAfterMs = waitBefore(spent, now.getTime());
    if (retryAfterMs > 0) {
      throw new TryAgain('the request limit of the POS is reached', { sent: false, retryAfterMs });
    }
    try {
      return await request();
    } catch (error) {
      if (error instanceof TryAgain && error.httpStatus === 429) {
        spent.closedUntil = now.getTime() + (error.retryAfterMs ?? 0);
      }
      throw error;
    }
  };
}
