import type { Failure } from './wire.ts';

/** An error answer of the service. `status` is 0 if the service could not be reached. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  /** The cause, if the service gave one. */
  readonly reason: { code: string; proof?: boolean } | null;

  constructor(status: number, message: string, reason: Refused['reason'] = null) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** Calls the service with JSON. @throws Refused */
export async function call<Answer>(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  options: { body?: unknown; signal?: AbortSignal | undefined } = {},
): Promise<Answer> {
  const { body, signal } = options;
  const response = await fetch(path, {
    method,
    signal: signal ?? null,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Refused(0, 'The service cannot be reached.');
  });
  if (!response.ok) throw await refusal(response);
  return (response.status === 204 ? undefined : await response.json()) as Answer;
}

async function refusal(response: Response): Promise<Refused> {
  const {
    error = `The service answered ${response.status}.`,
    problems = [],
    cause = null,
  } = (await response.json().catch(() => ({}))) as Partial<Failure>;
  const fields = problems.map(({ field, problem }) => `${field} ${problem}`);
  return new Refused(response.status, [error, ...fields].join('; '), cause);
}
