import type { ZodType } from 'zod';
import { GiveUp, NeedsOperator, type TryAgain } from '../../core/domain/errors.ts';
import type { PosAnswer } from '../call-pos.ts';
import { refusalBy } from './call-square.ts';

/**
 * Reads Square's answer to a request that is not about an order.
 * @param what the request, for the message, as in "the list of subscriptions"
 * @throws TryAgain, NeedsOperator
 */
export function readAnswer<Shape>(shape: ZodType<Shape>, answer: PosAnswer, what: string): Shape {
  if (answer.status >= 300) throw refusalOf(answer, what);
  const result = shape.safeParse(answer.json);
  if (!result.success) throw new NeedsOperator(`Square's answer about ${what} cannot be read: is baseUrl right?`);
  return result.data;
}

/** Explains a refusal. Without an order there is nothing to give up, so GiveUp becomes NeedsOperator. */
export function refusalOf(answer: PosAnswer, what: string): TryAgain | NeedsOperator {
  const refusal = refusalBy(answer, what);
  if (!(refusal instanceof GiveUp)) return refusal;
  return new NeedsOperator(refusal.message, { httpStatus: refusal.httpStatus });
}
