import { z } from 'zod';
import { Role } from '../../core/operators/operator.ts';
import { ReplayCause } from '../../core/domain/webhook-cause.ts';
import { RefusalCause } from '../../core/domain/placement-cause.ts';

/** Why a 403. */
export const AccessCause = z.discriminatedUnion('code', [
  z.object({ code: z.literal('role_missing'), roles: z.array(Role) }),
  z.object({
    code: z.literal('sign_in_again'),
    proof: z
      .boolean()
      .meta({ description: 'Whether the issuer must look at them again. If not, a new session is enough.' }),
  }),
]);
export type AccessCause = z.infer<typeof AccessCause>;

export const Failure = z
  .object({
    error: z.string(),
    problems: z
      .array(z.object({ field: z.string(), problem: z.string() }))
      .exactOptional()
      .meta({ description: 'What is wrong with the request, field by field.' }),
    cause: z
      .union([ReplayCause, RefusalCause, AccessCause])
      .exactOptional()
      .meta({ description: 'Of a 403 and a 409: why, as data.' }),
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
  403: json('The token, or the session, has no such role there.', Failure),
  404: json('There is no such thing.', Failure),
  409: json('It cannot be done as things are: `error` says why. Nothing was changed.', Failure),
  413: json('The body is too large.', Failure),
  415: json('The body is not JSON.', Failure),
  429: json('Too many wrong ones came from your address: ask again later (`Retry-After`).', Failure),
  500: json('It failed; the log says how.', Failure),
  503: json('Postgres is away, or there is no room now: ask again later (`Retry-After`).', Failure),
};
type Code = keyof typeof FAILURES;
const ALWAYS = [400, 401, 403, 429, 500, 503] as const;
type Always = (typeof ALWAYS)[number];

/** Describes the failures of a route: those of every route, and these. */
export function failures<Also extends Code>(...also: Also[]): Pick<typeof FAILURES, Also | Always> {
  const codes: Code[] = [...ALWAYS, ...also];
  return Object.fromEntries(codes.map((code) => [code, FAILURES[code]])) as ReturnType<typeof failures<Also>>;
}
