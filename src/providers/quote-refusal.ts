import { NeedsOperator } from '../core/domain/errors.ts';

/**
 * Makes a handler for `.catch` that explains a 401 or 403, where `callPos` can only name the request.
 * @param statuses the statuses to explain
 * @param explain the sentence, without secrets
 * @returns a function that throws a NeedsOperator with the sentence, and any other error as it is
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
