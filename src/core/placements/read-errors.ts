import { describeCause } from '../domain/placement-cause.ts';
import { classifyError } from '../domain/classify-error.ts';
import type { OrderModule, PlatformError } from '../domain/order-module.ts';
import { askMapper } from './ask-mapper.ts';

/** An error of the platform, and the code that it is judged by. */
export type CodedError = { error: PlatformError; code: string | undefined };

/**
 * Makes a function that reads the `errors` of a GraphQL answer, whatever is there.
 * @param warn told the first time that the module's `errorCode` throws. Errors keep their own codes then.
 */
export function errorReader(
  module: Pick<OrderModule, 'errorCode'>,
  warn: (problem: string) => void,
): (errors: unknown) => CodedError[] {
  let hasThrown = false;
  const translate = (error: PlatformError): unknown => {
    try {
      return askMapper(() => module.errorCode?.(error));
    } catch (thrown) {
      if (!hasThrown)
        warn(`${describeCause(classifyError(thrown).cause)}: errors of the platform keep their own codes`);
      hasThrown = true;
      return undefined;
    }
  };
  return (errors) =>
    (Array.isArray(errors) ? errors : []).filter(isError).map((error) => {
      const code = [translate(error), error.extensions?.['code']].find((each) => typeof each === 'string');
      return { error, code };
    });
}

function isError(value: unknown): value is PlatformError {
  return typeof value === 'object' && value !== null;
}
