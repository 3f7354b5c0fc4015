import { NeedsOperator } from '../core/domain/errors.ts';

/**
 * For `.catch`: says what a refusal with 401 or 403 means, where `callPos` can only name the request.
 * @param statuses those that mean it
 * @param explain the sentence, without secrets
 * @returns throws an NeedsOperator with it, and any other error as it is
 */
export function quoteRefusal(
  statuses: readonly (401 | 403)[],
  explain: (httpStatus: number) => string,
): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof NeedsOperator)) throw error;
    const httpStatus = statuses.find((status) => status === error.httpStatus);
    throw httpStatus === undefined ? error : new NeedsOperator(explain(httpStatus), { httpStatus });
  };
}
