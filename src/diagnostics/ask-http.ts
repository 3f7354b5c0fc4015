import { AnswerTooLarge, boundedFetch } from '../core/egress/bounded-fetch.ts';

/** The parts of a server's answer that the doctor reads. */
export type HttpAnswer = {
  status: number;
  headers: Headers;
  /** Undefined if the body is not JSON. */
  json: unknown;
};

const TIMEOUT_MS = 5_000;

/**
 * Sends one request and follows no redirect.
 * @param limit maximum size of the answer in bytes
 * @returns the answer, or the reason why there is none, in a few words
 */
export async function askHttp(url: string, init: RequestInit = {}, limit?: number): Promise<HttpAnswer | string> {
  try {
    const response = await boundedFetch(limit)(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { status: response.status, headers: response.headers, json: parsed(await response.text()) };
  } catch (error) {
    return describeFailure(error);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Explains a failed request by the error's cause, because the message of fetch is always "fetch failed". */
export function describeFailure(error: unknown, timeoutMs = TIMEOUT_MS): string {
  if ((error as Error).name === 'TimeoutError') return `no answer in ${timeoutMs / 1000} s`;
  if (error instanceof AnswerTooLarge) return error.message;
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  const { code, message } = cause ?? {};
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `its name cannot be resolved (${code})`;
  if (code === 'ECONNREFUSED') return 'no service listens there (ECONNREFUSED)';
  if (typeof code === 'string') return `no connection (${code})`;
  return typeof message === 'string' && message !== '' ? 'no connection' : 'no usable answer';
}

/** The host of a URL, without credentials, path or query. */
export function hostOf(url: string): string {
  return new URL(url).host;
}

/** Describes an unexpected answer by its status and type. */
export function kindOf({ status, headers, json }: HttpAnswer): string {
  const type = headers.get('content-type')?.split(';', 1)[0] ?? 'no content type';
  return `${status} with ${json === undefined ? type : 'other JSON'}`;
}
