import { GiveUp, NeedsOperator, Poison } from '../core/domain/errors.ts';

/** Says what becomes of an order if the POS gives no better reason. */
export const NOT_TAKEN = 'The restaurant could not take this order.';

/** An order that the POS will never take. The reason is `NOT_TAKEN` and `technical`, unless `about` has a better one. */
export function neverTaken(message: string, about: Partial<ConstructorParameters<typeof GiveUp>[1]> = {}): GiveUp {
  return new GiveUp(message, { reason: NOT_TAKEN, reasonCode: 'technical', ...about });
}

/** Whether an answer has one of the fields by which the vendor's refusals are known, whatever is in it. */
export const hasOneOf = (json: unknown, fields: readonly string[]): boolean =>
  typeof json === 'object' && json !== null && fields.some((field) => Object.hasOwn(json, field));

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

/** @throws Poison if a webhook has none of the fields that name its order */
export function refuseNameless(ids: Readonly<Record<string, string | undefined>>): void {
  if (Object.values(ids).some((id) => id !== undefined)) return;
  const fields = Object.keys(ids);
  throw new Poison(
    `${fields.join(' and ')} are missing or no ids: a text of 1 to 255 characters in one of them is required`,
    {
      cause: { code: 'names_no_order', fields },
    },
  );
}
