import type { FastifyReply } from 'fastify';

/** The media type of a problem: https://www.rfc-editor.org/rfc/rfc9457 */
export const PROBLEM_JSON = 'application/problem+json';

/** The problems of the operator API by status: the last part of `type`, the `title`, and a description. */
export const PROBLEMS = {
  400: {
    type: 'invalid-request',
    title: 'Invalid request',
    about: 'The path, the query or the body is wrong. `issues` names each wrong field.',
  },
  401: {
    type: 'not-authenticated',
    title: 'Not authenticated',
    about: 'The token, or the session of the console, is missing or not valid.',
  },
  403: {
    type: 'not-allowed',
    title: 'Not allowed',
    about: 'You lack a role that the request needs, or it needs a recent sign-in. `cause` says which.',
  },
  404: {
    type: 'not-found',
    title: 'Not found',
    about: 'Nothing has this id or this path, or it is at a location where you have no role.',
  },
  409: {
    type: 'conflict',
    title: 'Not possible now',
    about: 'The current state does not allow it. `detail` and `cause` say why. Nothing was changed.',
  },
  410: {
    type: 'gone',
    title: 'No longer stored',
    about: 'It was deleted after its retention. `detail` says what is still known.',
  },
  412: {
    type: 'changed-meanwhile',
    title: 'Changed meanwhile',
    about: 'It no longer has the ETag in `If-Match`, or exists in spite of `If-None-Match`. Nothing was changed.',
  },
  413: {
    type: 'body-too-large',
    title: 'Body too large',
    about: 'The body is larger than 64 KiB, or 256 KiB with an item map.',
  },
  415: { type: 'not-json', title: 'Not JSON', about: 'The body was not sent as `application/json`.' },
  422: {
    type: 'key-used',
    title: 'Key already used',
    about: 'The `Idempotency-Key` was used for another request. Nothing was changed.',
  },
  429: {
    type: 'too-many-failures',
    title: 'Too many failed authentications',
    about: 'Too many wrong credentials came from your address. Try again after `Retry-After` seconds.',
  },
  500: {
    type: 'internal-error',
    title: 'Internal error',
    about: 'The service failed. Its log has the details.',
  },
  503: {
    type: 'unavailable',
    title: 'Unavailable',
    about: 'The database is unavailable, or the process is at its limit. Try again after `Retry-After` seconds.',
  },
} as const;
export type ProblemStatus = keyof typeof PROBLEMS;

/** The identifier of a problem: an absolute URI that is the same on every host. */
export function typeOf(status: ProblemStatus): string {
  return `urn:expediter:problem:${PROBLEMS[status].type}`;
}

export type Problem = { type: string; title: string; status: ProblemStatus; detail: string };

/**
 * Makes the body of a problem. No other code builds one.
 * @param detail a sentence for people: what happened, then what to do
 * @param more `issues` and `cause`, if there are any
 */
export function makeProblem(status: ProblemStatus, detail: string, more: object = {}): Problem {
  return { type: typeOf(status), title: PROBLEMS[status].title, status, detail, ...more };
}

export function sendProblem(reply: FastifyReply, ...about: Parameters<typeof makeProblem>): FastifyReply {
  const problem = makeProblem(...about);
  return reply.code(problem.status).type(PROBLEM_JSON).send(problem);
}
