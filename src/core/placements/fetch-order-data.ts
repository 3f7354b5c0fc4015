import { ClientError, GraphQLClient } from 'graphql-request';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { OrderModule } from '../domain/order-module.ts';
import { parseRetryAfter } from '../domain/parse-retry-after.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { askMapper } from './ask-mapper.ts';
import { hasValue } from './has-value.ts';

/** Asks the platform for one order. @returns GraphQL's `data`; undefined if the platform has no such order (yet) */
export type FetchOrderData = (serviceOrderId: string) => Promise<unknown>;

const TIMEOUT_MS = 8_000;

/**
 * Makes a function that throws TryAgain, NeedsOperator or GiveUp, never the client library's own errors: their messages
 * contain the whole answer, and so a member's data.
 */
export function orderDataFetcher(about: {
  url: string;
  token: string | undefined;
  module: Pick<OrderModule, 'query' | 'variables' | 'headers'>;
}): FetchOrderData {
  const { url, token, module } = about;
  const client = new GraphQLClient(url, { headers: headersOf(module, token) });
  return async (serviceOrderId) => {
    const variables = askMapper(() => variablesOf(module, serviceOrderId));
    try {
      const data = await client.request<unknown>({
        document: module.query,
        variables,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      return hasValue(data) ? data : undefined;
    } catch (error) {
      return classifyFailure(error);
    }
  };
}

export function headersOf(module: Pick<OrderModule, 'headers'>, token: string | undefined): Record<string, string> {
  return module.headers?.(token) ?? (token === undefined ? {} : { authorization: `Bearer ${token}` });
}

/** @throws whatever the module's function throws */
export function variablesOf(module: Pick<OrderModule, 'variables'>, orderId: string): Record<string, unknown> {
  return module.variables?.(orderId) ?? { id: orderId };
}

/** Classifies an error. Undefined if the platform says that there is no such order. */
function classifyFailure(error: unknown): undefined {
  if (!(error instanceof ClientError)) {
    const name = (error as Error).name === 'TimeoutError' ? `no answer in ${TIMEOUT_MS} ms` : 'no usable answer';
    throw new TryAgain(`the ordering platform gave ${name}`, { sent: false, cause: { code: 'platform_unreachable' } });
  }
  const { status, errors, data } = error.response;
  // Errors further down, such as about a menu item, are not about the order.
  const aboutOrder = (errors ?? []).filter(
    ({ path }) => path === undefined || (!hasValue(data) && (path.length === 1 || isNullAt(data, path))),
  );
  const codes = aboutOrder.map((each) => each.extensions?.['code']);
  if (codes.includes('NOT_FOUND')) return undefined;
  if (codes.includes('FORBIDDEN') || codes.includes('UNAUTHENTICATED') || status === 401 || status === 403) {
    const cause = { code: 'platform_refuses_us', httpStatus: status } as const;
    throw new NeedsOperator(describeCause(cause), { httpStatus: status, cause });
  }
  if (codes.includes('BAD_USER_INPUT')) {
    const cause = { code: 'order_id_invalid', httpStatus: status } as const;
    throw new GiveUp(describeCause(cause), { reason: 'the order could not be read', httpStatus: status, cause });
  }
  const { headers } = error.response as { headers?: Headers };
  throw new TryAgain(`the ordering platform answered ${status}${errors ? ' with GraphQL errors' : ''}`, {
    sent: false,
    httpStatus: status,
    retryAfterMs: parseRetryAfter(headers),
    cause: { code: 'platform_failing', httpStatus: status },
  });
}

/** True if the error's own field is null, and not one above it, as where a field further down must not be null. */
function isNullAt(data: unknown, path: readonly (string | number)[]): boolean {
  let value = data;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return false;
    value = (value as Record<string | number, unknown>)[key];
  }
  return value === null;
}
