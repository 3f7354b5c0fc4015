import { readFile } from 'node:fs/promises';
import { ClientError, GraphQLClient } from 'graphql-request';
import { parse } from 'graphql';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { parseRetryAfter } from '../domain/parse-retry-after.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { readCanonicalOrder, type ReadOrder } from '../domain/read-canonical-order.ts';

/** Fetches the present order. Undefined if the platform has none by that id (yet). */
export type RefetchOrder = (serviceOrderId: string) => Promise<ReadOrder | undefined>;

/** The query, with the canonical names. ORDER_QUERY_FILE replaces it for a platform with other names, by aliases. */
const DEFAULT_ORDER_QUERY = `query Order($id: ID!) {
  order(id: $id) {
    serviceOrderId
    locationId
    member { id name email phone }
    fulfillment {
      type
      destination { line1 line2 city postalCode region country latitude longitude instructions }
      requestedAt
    }
    items {
      serviceItemId name quantity unitPrice notes ageRestricted
      modifiers { serviceModifierId name quantity unitPrice }
    }
    money { subtotal tax tip fee total currency }
    notes
    placedAt
  }
}`;

const TIMEOUT_MS = 8_000;

/** @throws Error that names the file, if it cannot be read or is not GraphQL */
export async function readOrderQuery(file: string | undefined): Promise<string> {
  if (file === undefined) return DEFAULT_ORDER_QUERY;
  try {
    const text = await readFile(file, 'utf8');
    parse(text);
    return text;
  } catch (error) {
    throw new Error(`ORDER_QUERY_FILE ${file} holds no GraphQL document: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Makes a function that throws TryAgain, NeedsOperator or GiveUp, never the client library's own errors: their messages
 * contain the whole answer, and so a member's data.
 */
export function orderRefetcher(about: { url: string; token: string | undefined; query: string }): RefetchOrder {
  const client = new GraphQLClient(about.url, {
    headers: about.token === undefined ? {} : { authorization: `Bearer ${about.token}` },
  });
  return async (serviceOrderId) => {
    let data: unknown;
    try {
      data = await client.request<unknown>({
        document: about.query,
        variables: { id: serviceOrderId },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    } catch (error) {
      return classifyFailure(error);
    }
    const { order } = (data ?? {}) as { order?: unknown };
    if (order === undefined) {
      const cause = { code: 'query_without_order' } as const;
      throw new NeedsOperator(describeCause(cause), { cause });
    }
    if (order === null) return undefined;
    return readCanonicalOrder(order, { serviceOrderId });
  };
}

/** Classifies an error. Undefined if the platform says that there is no such order. */
function classifyFailure(error: unknown): undefined {
  if (!(error instanceof ClientError)) {
    const name = (error as Error).name === 'TimeoutError' ? `no answer in ${TIMEOUT_MS} ms` : 'no usable answer';
    throw new TryAgain(`the ordering platform gave ${name}`, { sent: false, cause: { code: 'platform_unreachable' } });
  }
  const { status, errors } = error.response;
  // Errors further down, such as about a menu item, are not about the order.
  const aboutOrder = (errors ?? []).filter(
    ({ path }) => path === undefined || (path.length === 1 && path[0] === 'order'),
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
