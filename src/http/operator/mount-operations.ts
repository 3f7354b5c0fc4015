import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import { explainError } from './answer-errors.ts';
import { failures, json } from './answers.ts';
import { STREAM_HEADERS } from '../format-event.ts';
import { RECHECK_MS, eventStream, type EventStream } from './event-stream.ts';
import { endActionOf, locationsWithin, operatorOf } from './guard-routes.ts';
import { has, mayPlace, scopeOf } from '../../core/operators/operator.ts';
import type { OperatorDeps } from './operator-deps.ts';
import { actionFrom } from '../request.ts';
import { HEADERS, describeApi, perform, type Caller, type Operation, type Options } from '../../operators/operation.ts';

/** Maximum age of the stream of an operation. The longest operation waits 15 minutes for each of six statuses. */
const STREAM_MAX_MS = 2 * 3_600_000;

/**
 * Mounts the routes of all operations on a scope whose requests are authenticated and guarded.
 * @param closing aborts at the end of a drain, and ends requests in progress
 */
export function mountOperations(
  scope: FastifyInstance,
  operations: readonly Operation[],
  deps: OperatorDeps,
  closing: AbortSignal,
): void {
  const { translating, registry } = deps;
  const settings = { ...translating, registry };
  const service = deps;
  const pos = { ...deps, decryptSettings: settings.decryptSettings };
  const config = { ...deps.waysOut, OPERATOR_TOKEN: deps.operatorToken, CONSOLE_URL: deps.consoleUrl };
  const callerOf = (request: FastifyRequest, { takes = [] }: Operation): Caller => ({
    ...deps,
    headers: Object.fromEntries(
      takes.flatMap((name) => {
        const value = request.headers[HEADERS[name].header];
        return value === undefined ? [] : [[name, String(value)]];
      }),
    ),
    service,
    settings,
    pos,
    config,
    by: { ...operatorOf(request), ...actionFrom(request) },
    tell() {},
    stopped: closing,
    isOver: () => closing.aborted || request.socket.destroyed,
    within: (requested) => locationsWithin(request, requested),
    scope: () => scopeOf(operatorOf(request), request.routeOptions.config.access?.role ?? 'admin'),
    mayPlace(before, after, given) {
      const { locationId = '' } = request.params as { locationId?: string };
      return mayPlace(operatorOf(request), locationId, before, after, given);
    },
    hasAt: (role, locationId, groups) => has(operatorOf(request), role, locationId, groups),
    note(after) {
      if (request.action !== undefined) request.action.after = after;
    },
  });
  for (const operation of operations) {
    const { api, about } = operation;
    scope.route({
      ...methodAndUrl(api.route),
      ...(about && {
        config: { about: (request) => about(callerOf(request, operation), inputOf(operation, request)) },
      }),
      ...(api.bodyLimit !== undefined && { bodyLimit: api.bodyLimit }),
      schema: schemaOf(operation, api),
      async handler(request, reply) {
        const input = inputOf(operation, request);
        if (api.streams !== undefined) {
          return streamProgress(request, reply, { pool: deps.pool, closing }, async (followed) => {
            const done = await perform(operation, { ...callerOf(request, operation), ...followed }, input);
            return api.output.parse(done) as object;
          });
        }
        const done = await perform(operation, callerOf(request, operation), input);
        if ('created' in done && done.created === true && input['dryRun'] !== true) reply.code(201);
        if ('etag' in done && done.etag !== null) reply.header('etag', done.etag);
        return done;
      },
    });
  }
}

/**
 * Answers with a stream of the progress of an operation. The stream begins with the first event, so that a refusal before
 * it is answered like that of any other operation.
 */
async function streamProgress(
  request: FastifyRequest,
  reply: FastifyReply,
  { pool, closing }: { pool: Pool; closing: AbortSignal },
  work: (followed: Pick<Caller, 'tell' | 'stopped'>) => Promise<object>,
): Promise<FastifyReply> {
  const over = new AbortController();
  // 503: the client may repeat the request, and nobody has to look for a fault.
  const end = (why: string): void => over.abort(Object.assign(new Error(why), { statusCode: 503 }));
  const stop = (): void => end('This process is stopping, and has ended its work. Try again.');
  const recheck = async (): Promise<void> => {
    const again = await request.identifyAgain().catch(() => operatorOf(request));
    if (again === undefined) end('You are no longer signed in.');
  };
  const rechecking = setInterval(() => void recheck(), RECHECK_MS).unref();
  closing.addEventListener('abort', stop);
  if (closing.aborted) stop();
  const stream = await new Promise<EventStream>((begun, refused) => {
    let opened: EventStream | undefined;
    const tell: Caller['tell'] = (event, data) => {
      if (opened === undefined) {
        opened = eventStream({ maxAgeMs: STREAM_MAX_MS });
        opened.onClose(() => end('The client has disconnected.'));
        begun(opened);
      }
      opened.send({ event, data });
    };
    const finish = async (event: string, data: object, status: number): Promise<void> => {
      tell(event, data);
      await endActionOf(request, pool, status);
      opened?.end();
    };
    work({ tell, stopped: over.signal })
      .then(
        (done) => finish('done', done, 200),
        async (error: FastifyError) => {
          if (opened === undefined) return refused(error);
          const { headers: _, ...problem } = explainError(error, request.log);
          return finish('failed', problem, problem.status);
        },
      )
      .finally(() => {
        clearInterval(rechecking);
        closing.removeEventListener('abort', stop);
      })
      .catch(refused);
  });
  return reply.headers(STREAM_HEADERS).send(stream.body);
}

function methodAndUrl(route: string): Pick<RouteOptions, 'method' | 'url'> {
  const [method = '', url = ''] = route.split(' ');
  return { method, url };
}

/** Merges path, query and body, as far as the operation has a schema for them. Their field names differ. */
function inputOf({ params, query, body }: Operation, request: FastifyRequest): Options {
  return {
    ...(params && (request.params as Options)),
    ...(query && (request.query as Options)),
    ...(body && (request.body as Options)),
  };
}

function schemaOf(
  { id, access: { of, does }, params, query, body, takes = [] }: Operation,
  { route, summary, description, output, answer, refuses = [], creates, streams }: Operation['api'],
): FastifySchema {
  return {
    operationId: id,
    summary,
    description: describeApi({ description, streams }),
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    ...(takes.length > 0 && {
      headers: z.looseObject(Object.fromEntries(takes.map((field) => [HEADERS[field].header, HEADERS[field].schema]))),
    }),
    response: {
      200: streams === undefined ? json(answer, output) : eventsEndingWith(answer, output),
      ...(creates && { 201: json('It was created.', output) }),
      ...failures(
        ...(params === undefined ? [] : [404 as const]),
        ...refuses,
        // A past order can only be read.
        ...(of === 'order' ? [410 as const] : []),
        ...(of === 'order' && does !== undefined ? [409 as const] : []),
        ...(route.startsWith('GET') ? [] : [413 as const, 415 as const]),
      ),
    },
  };
}

/** The schema of a stream is that of its last event, so that a reader of the API finds it. */
function eventsEndingWith(answer: string, output: z.ZodType): object {
  return { description: answer, content: { 'text/event-stream': { schema: output } } };
}
