import { isObject } from '../core/domain/json-text.ts';
import { z } from 'zod';
import { GiveUp, NeedsOperator, Poison } from '../core/domain/errors.ts';
import { describeIssues, Id } from '../core/domain/order.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import { absentable } from './read-json.ts';

/** Says what becomes of an order if the POS gives no better reason. */
export const NOT_TAKEN = 'The restaurant could not take this order.';

/** An order that the POS will never take. The reason is `NOT_TAKEN` and `technical`, unless `about` has a better one. */
export function neverTaken(message: string, about: Partial<ConstructorParameters<typeof GiveUp>[1]> = {}): GiveUp {
  return new GiveUp(message, { reason: NOT_TAKEN, reasonCode: 'technical', ...about });
}

/** Whether an answer has one of the fields by which the vendor's refusals are known, whatever is in it. */
export const hasOneOf = (json: unknown, fields: readonly string[]): boolean =>
  isObject(json) && fields.some((field) => Object.hasOwn(json, field));

/** A 4xx that is not in the vendor's own shape. Perhaps a gateway answered, so it does not end the order. */
export function notItsOwn(message: string, httpStatus: number): NeedsOperator {
  return new NeedsOperator(`${message}, and not in its own form: perhaps a gateway answered. Check the URL`, {
    httpStatus,
  });
}

/** A cancel that came after the food was ready, or that the POS refuses. */
export function tooLate(message: string, httpStatus?: number): GiveUp {
  return new GiveUp(message, {
    reason: 'The restaurant can no longer cancel this order.',
    reasonCode: 'other',
    httpStatus,
  });
}

/**
 * @param ids the readable ids of a webhook's order, by the paths of their fields
 * @param json the webhook. A field that is there and holds no id is told with its kind
 * @throws Poison if a webhook has none of the fields that name its order
 */
export function refuseNameless(ids: Readonly<Record<string, string | undefined>>, json?: unknown): void {
  if (Object.values(ids).some((id) => id !== undefined)) return;
  const fields = Object.keys(ids);
  const issues = fields.flatMap((field) => {
    const path = field.split('.');
    const value = path.reduce((at, key) => (at as Record<string, unknown> | null | undefined)?.[key], json);
    const read = absentable(Id).safeParse(value, { reportInput: true });
    return (read.error?.issues ?? []).map((issue) => ({ ...issue, path }));
  });
  if (issues.length > 0) {
    const error = new z.ZodError(issues);
    throw new Poison(describeIssues(error), { cause: { code: 'wrong_shape', issues: shapeIssues(error) } });
  }
  throw new Poison(`${fields.join(' and ')} are missing: a string in one of them is required`, {
    cause: { code: 'names_no_order', fields },
  });
}
