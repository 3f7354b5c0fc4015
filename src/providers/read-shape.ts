import { z, type ZodType } from 'zod';
import { Poison } from '../core/domain/errors.ts';
import { describeIssues } from '../core/domain/order.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';

/** Each is compiled when it is first used: several times as fast, and with little for the garbage collector. */
const compiled = new WeakMap<ZodType, ZodType>();

function compile<Shape>(schema: ZodType<Shape>): ZodType<Shape> {
  let known = compiled.get(schema) as ZodType<Shape> | undefined;
  if (known === undefined) {
    known = z.compile(schema);
    compiled.set(schema, known);
  }
  return known;
}

/**
 * Reads a part of a webhook by its schema.
 * @throws Poison that names the fields which are wrong and never their values, as those may be a member's
 */
export function readShape<Shape>(schema: ZodType<Shape>, json: unknown): Shape {
  const result = compile(schema).safeParse(json, { reportInput: true });
  if (result.success) return result.data;
  throw new Poison(describeIssues(result.error), {
    cause: { code: 'wrong_shape', issues: shapeIssues(result.error) },
  });
}
