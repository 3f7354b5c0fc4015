import { session } from './session.ts';
import type { Failure } from './wire.ts';

/** Where the operator API is for whoever has a session. */
export const API = '/console/api';

/** What the service said no to, in its own words; `status` 0 when it could not be reached. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  readonly problems: NonNullable<Failure['problems']>;

  constructor(status: number, message: string, problems: Failure['problems']) {
    super(message);
    this.status = status;
    this.problems = problems ?? [];
  }
}

/**
 * Asks the service.
 * @param path below the API, its ids percent-encoded
 * @throws Refused; a 401 also ends the session on screen
 */
export async function ask<Answer>(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  options: { body?: unknown; signal?: AbortSignal | undefined } = {},
): Promise<Answer> {
  const { body, signal } = options;
  const response = await fetch(API + path, {
    method,
    signal: signal ?? null,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Refused(0, 'The service cannot be reached.', undefined);
  });
  if (response.status === 401) session.value = { state: 'out' };
  if (!response.ok) throw await refusal(response);
  return (response.status === 204 ? undefined : await response.json()) as Answer;
}

async function refusal(response: Response): Promise<Refused> {
  const said = (await response.json().catch(() => ({}))) as Partial<Failure>;
  return new Refused(response.status, said.error ?? `The service answered ${response.status}.`, said.problems);
}

/** A query string of what is set, with its `?`; empty when nothing is. */
export function query(parameters: Record<string, string | number | boolean | undefined>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  return set.length === 0
    ? ''
    : `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString()}`;
}
