import { inPlainWords } from '../src/core/domain/explain-failure.ts';
import type { Problem, ShapeIssue } from './wire.ts';

/** An error answer of the service. `status` is 0 if the service could not be reached. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  /** The cause, if the service gave one. */
  readonly reason: { code: string; proof?: boolean } | null;
  /** The wrong fields of the request, if the service named them. */
  readonly issues: readonly ShapeIssue[];

  constructor(status: number, message: string, about: { reason?: Refused['reason']; issues?: ShapeIssue[] } = {}) {
    super(message);
    this.status = status;
    this.reason = about.reason ?? null;
    this.issues = about.issues ?? [];
  }
}

/** Calls the service with JSON. @throws Refused */
export async function call<Answer>(
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  options: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal | undefined } = {},
): Promise<Answer> {
  const { body, headers = {}, signal } = options;
  const response = await fetch(path, {
    method,
    signal: signal ?? null,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Refused(0, 'The service cannot be reached.');
  });
  if (!response.ok) throw await refusal(response);
  return (response.status === 204 ? undefined : await response.json()) as Answer;
}

async function refusal(response: Response): Promise<Refused> {
  const {
    detail = `The service gave no reason. Try again. If that does not help, report the number ${response.status}.`,
    cause = null,
    issues = [],
  } = (await response.json().catch(() => ({}))) as Partial<Problem>;
  return new Refused(response.status, inPlainWords(detail), { reason: cause, issues });
}
