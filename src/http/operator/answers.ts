import { z } from 'zod';
import { ReplayCause } from '../../core/domain/webhook-cause.ts';
import { RefusalCause } from '../../core/domain/placement-cause.ts';

export const Failure = z
  .object({
    error: z.string(),
    problems: z
      .array(z.object({ field: z.string(), problem: z.string() }))
      .exactOptional()
      .meta({ description: 'What is wrong with the request, field by field.' }),
    cause: z.union([ReplayCause, RefusalCause]).exactOptional().meta({ description: 'Of a 409: why, as data.' }),
  })
  .meta({ id: 'Failure', examples: [{ error: 'no signal ever named this order' }] });

/** Describes one JSON answer of a route. */
export function json<Schema extends z.ZodType>(
  description: string,
  schema: Schema,
): { description: string; content: { 'application/json': { schema: Schema } } } {
  return { description, content: { 'application/json': { schema } } };
}

const FAILURES = {
  400: json('The request is not right; `problems` names each field.', Failure),
  401: json('No token, or not the right one.', Failure),
  404: json('There is no such thing.', Failure),
  409: json('It cannot be done as things are: `error` says why. Nothing was changed.', Failure),
  413: json('The body is too large.', Failure),
  415: json('The body is not JSON.', Failure),
  500: json('It failed; the log says how.', Failure),
  503: json('Postgres is away, or there is no room now: ask again later (`Retry-After`).', Failure),
};
type Code = keyof typeof FAILURES;

/** Describes the failures of a route: those of every route, and these. */
export function failures<Also extends Code>(...also: Also[]): Pick<typeof FAILURES, Also | 400 | 401 | 500 | 503> {
  const codes: Code[] = [400, 401, 500, 503, ...also];
  return Object.fromEntries(codes.map((code) => [code, FAILURES[code]])) as ReturnType<typeof failures<Also>>;
}
