import pg from 'pg';
import type { FastifyBaseLogger, FastifyError, FastifyInstance, FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { toCauseText } from '../../core/domain/cause-text.ts';
import { issueInWords } from '../../core/domain/issue-in-words.ts';
import { TimeUnknown } from '../../core/postgres/database-clock.ts';
import { shapeIssues, type ShapeIssue } from '../../core/domain/shape-issues.ts';
import { findTooMuch } from './bound-bodies.ts';
import { TooManyFailures } from '../throttle-failures.ts';
import { PROBLEM_JSON, PROBLEMS, makeProblem, type Problem, type ProblemStatus } from '../problem.ts';

/** Messages of the `pg` library's errors that have no code. */
const LOST =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered|Query read timeout)/;
const UNREACHABLE = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'];

/** True if Postgres is unavailable or overloaded, so that the same request may succeed later. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isDatabaseAway);
  if (!(error instanceof Error)) return false;
  if (error instanceof TimeUnknown) return true;
  const { code } = error as { code?: unknown };
  // At a log-in, 55000 says that the database takes no connections now. In a statement, it is no outage.
  if (code === '55000') return (error as pg.DatabaseError).routine === 'CheckMyDatabase';
  // Not the same as `isAboutStatement`, which says whether the next statement may succeed on the same connection.
  if (error instanceof pg.DatabaseError) return /^(08|25006|40|53|55P03|57)/.test(error.code ?? '');
  return UNREACHABLE.includes(String(code)) || LOST.test(error.message) || isDatabaseAway(error.cause);
}

/** Maximum body, in bytes, without the item map of a location. */
export const BODY_LIMIT = 64 * 1024;

/** Makes a scope accept a JSON body of at most `BODY_LIMIT` bytes, or no body. A route may allow an item map next to it. */
export function takeJson(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  const parse = scope.getDefaultJsonParser('error', 'error');
  scope.addContentTypeParser(
    'application/json',
    { parseAs: 'string', bodyLimit: BODY_LIMIT },
    (request, body: string, done) => {
      // Some clients send a POST without a body.
      if (body === '') done(null, undefined);
      else {
        const problem = findTooMuch(body);
        if (problem !== undefined) done(Object.assign(new Error(problem), { statusCode: 400 }));
        else void parse(request, body, (error, json) => done(error ?? refuseLarge(body, json), json));
      }
    },
  );
}

/** @returns an error if the body is too large without its item map */
function refuseLarge(body: string, json: unknown): Error | null {
  if (body.length <= BODY_LIMIT) return null;
  const { settings, ...others } = json as { settings?: { itemMap?: unknown } };
  const rest = JSON.stringify({ ...others, settings: { ...settings, itemMap: undefined } });
  if (rest.length <= BODY_LIMIT) return null;
  return Object.assign(new Error('too large'), { statusCode: 413, code: 'FST_ERR_CTP_BODY_TOO_LARGE' });
}

/** Our sentences for errors of Fastify. We do not use Fastify's messages, because they may change. */
const SENTENCES = new Map([
  ['FST_ERR_CTP_INVALID_JSON_BODY', 'The body is not valid JSON.'],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 'The length of the body differs from its Content-Length.'],
  ['FST_ERR_CTP_BODY_TOO_LARGE', 'The body is too large: at most 64 KiB, and 256 KiB with an item map.'],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'The body is not JSON. Send it with the header Content-Type: application/json.'],
]);

class WrongFields extends Error {
  override readonly name = 'WrongFields';
  readonly statusCode = 400;
  /** Set by Fastify. */
  readonly validationContext: keyof typeof PLACES | undefined;
  readonly issues: ShapeIssue[];
  constructor(issues: ShapeIssue[]) {
    super('the request does not fit the schema');
    this.issues = issues;
  }
}

/** Parses requests with zod. Errors name the wrong fields, but do not quote their values. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema }) =>
  (data) => {
    const read = schema.safeParse(data, { reportInput: true });
    return read.success ? { value: read.data } : { error: new WrongFields(shapeIssues(read.error)) };
  };

const PLACES = { body: 'body', headers: 'headers', params: 'path', querystring: 'query' };

/** Answers errors as problems. The answer explains what is wrong with a request, but gives no details of our faults. */
export function answerErrors(scope: FastifyInstance): void {
  scope.setErrorHandler<FastifyError>((error, { log }, reply) => {
    const { headers = {}, ...problem } = explainError(error, log);
    return reply.headers(headers).code(problem.status).type(PROBLEM_JSON).send(problem);
  });
}

/** Explains an error as a problem, and logs it if the fault is not the client's. */
export function explainError(
  error: FastifyError,
  log: FastifyBaseLogger,
): Problem & { headers?: Record<string, string | number> } {
  if (error instanceof WrongFields) {
    const where = PLACES[error.validationContext ?? 'body'];
    const issues = error.issues.map((issue) => (issue.path === '' ? { ...issue, path: toCauseText(where) } : issue));
    return makeProblem(400, `The request is not valid: ${issues.map(issueInWords).join('; ')}.`, { issues });
  }
  if (error instanceof TooManyFailures) {
    // The connection is closed, because the body may still be arriving and will not be read.
    const headers = { 'retry-after': error.retryAfterS, connection: 'close', 'cache-control': 'no-store' };
    return { ...makeProblem(429, error.message), headers };
  }
  const again = { headers: { 'retry-after': '2' } };
  if (isDatabaseAway(error)) {
    log.warn({ err: error }, 'operator request failed: the database is unavailable');
    return { ...makeProblem(503, 'The database is unavailable. Try again later.'), ...again };
  }
  const status = error.statusCode ?? 500;
  if (status === 503) return { ...makeProblem(503, error.message), ...again };
  if (status < 400 || status >= 500) {
    log.error({ err: error }, 'operator request failed');
    return makeProblem(500, 'The request failed because of an error in the service. Its log has the details.');
  }
  const { issues } = (error.cause ?? {}) as { issues?: ShapeIssue[] };
  const isRefusal = (status === 403 || status === 409) && error.cause !== undefined;
  const more = isRefusal ? { cause: error.cause } : status === 400 && issues !== undefined ? { issues } : {};
  return makeProblem(isProblem(status) ? status : 400, SENTENCES.get(error.code) ?? error.message, more);
}

function isProblem(status: number): status is ProblemStatus {
  return Object.hasOwn(PROBLEMS, status);
}
