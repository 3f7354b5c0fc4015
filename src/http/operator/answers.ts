import { z } from 'zod';
import { Role } from '../../core/operators/operator.ts';
import { ReplayCause } from '../../core/domain/webhook-cause.ts';
import { RefusalCause } from '../../core/domain/placement-cause.ts';
import { ShapeIssue } from '../../core/domain/shape-issues.ts';
import { PROBLEM_JSON, PROBLEMS, typeOf, type ProblemStatus } from '../problem.ts';

export const AccessCause = z.discriminatedUnion('code', [
  z.object({ code: z.literal('role_missing'), roles: z.array(Role) }),
  z.object({
    code: z.literal('sign_in_again'),
    proof: z
      .boolean()
      .describe('True if the person must authenticate at the issuer again. Otherwise a new session is enough.'),
  }),
]);
export type AccessCause = z.infer<typeof AccessCause>;

export const Problem = z
  .object({
    type: z.string().describe('Identifies the problem. A URI that never changes. There is no page at this URI.'),
    title: z.string().meta({ description: 'The same for every problem of this type.' }),
    status: z.int().meta({ description: 'The status of the answer.' }),
    detail: z.string().meta({ description: 'What happened and what to do, in a sentence for people. It may change.' }),
    issues: z.array(ShapeIssue).exactOptional().describe('With 400: the wrong fields, at most ten, each once.'),
    cause: z
      .union([ReplayCause, RefusalCause, AccessCause])
      .exactOptional()
      .describe('With 403 and 409: the reason, for programs.'),
  })
  .meta({
    id: 'Problem',
    examples: [{ type: typeOf(404), title: PROBLEMS[404].title, status: 404, detail: 'No order has this id.' }],
  });

export function json<Schema extends z.ZodType>(
  description: string,
  schema: Schema,
): { description: string; content: { 'application/json': { schema: Schema } } } {
  return { description, content: { 'application/json': { schema } } };
}

type Described = { description: string; content: { [PROBLEM_JSON]: { schema: typeof Problem } } };
const ALWAYS = [400, 401, 403, 429, 500, 503] as const;

/** Describes the problems of a route: those in `ALWAYS` and the given ones. */
export function failures<Also extends ProblemStatus>(
  ...also: Also[]
): Record<Also | (typeof ALWAYS)[number], Described> {
  const described = [...ALWAYS, ...also].map((status): [ProblemStatus, Described] => [
    status,
    { description: PROBLEMS[status].about, content: { [PROBLEM_JSON]: { schema: Problem } } },
  ]);
  return Object.fromEntries(described) as Record<Also | (typeof ALWAYS)[number], Described>;
}
