import type { ZodType } from 'zod';
import { Poison } from '../core/domain/errors.ts';
import { describeIssues } from '../core/domain/order.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';

/**
 * Reads a part of a webhook by its schema.
 * @throws Poison that names the fields which are wrong and never their values, as those may be a member's
 */
export function readShape<Shape>(schema: ZodType<Shape>, json: unknown): Shape {
  const result = schema.safeParse(json, { reportInput: true });
  if (result.success) return result.data;
  throw new Poison(describeIssues(result.error), {
    cause: { code: 'wrong_shape', issues: shapeIssues(result.error) },
  });
}
