import { jsonIn } from '../core/domain/json-text.ts';
import { boundedFetch, describeFailure } from '../core/egress/bounded-fetch.ts';

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
    return { status: response.status, headers: response.headers, json: jsonIn(await response.text()) };
  } catch (error) {
    return describeFailure(error, TIMEOUT_MS);
  }
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
