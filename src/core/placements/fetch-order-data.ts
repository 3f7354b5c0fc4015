import type { ClientError, GraphQLClient } from 'graphql-request';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { OrderModule } from '../domain/order-module.ts';
import { AnswerTooLarge, boundedFetch } from '../egress/bounded-fetch.ts';
import { parseRetryAfter } from '../domain/classify-error.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { askMapper, type CodedError, errorReader, judgeErrors } from './read-order-data.ts';
import { hasValue } from './placement-sql.ts';

/** Asks the platform for one order. @returns GraphQL's `data`; undefined if the platform has no such order (yet) */
export type FetchOrderData = (serviceOrderId: string) => Promise<unknown>;

const TIMEOUT_MS = 8_000;
/** Bytes of one order. One of 300 items with all about them is below 1 MiB. */
const ORDER_LIMIT = 4 * 2 ** 20;

/**
 * Makes a function that throws TryAgain, NeedsOperator or GiveUp, never the client library's own errors: their messages
 * contain the whole answer, and so a member's data.
 */
export function orderDataFetcher(about: {
  url: string;
  token: string | undefined;
  module: Omit<OrderModule, 'toCanonicalOrder'>;
  /** Told once if the module's `errorCode` throws. */
  warn: (problem: string) => void;
  /** Given the errors of an answer that has some. */
  onErrors?: (errors: readonly CodedError[]) => void;
}): FetchOrderData {
  const { url, token, module, onErrors } = about;
  const readErrors = errorReader(module, about.warn);
  const headers = headersOf(module, token);
  let client: GraphQLClient | undefined;
  return async (serviceOrderId) => {
    const variables = askMapper(() => variablesOf(module, serviceOrderId));
    const { ClientError, GraphQLClient } = await loadGraphqlRequest();
    client ??= new GraphQLClient(url, { headers, fetch: boundedFetch(ORDER_LIMIT) });
    try {
      const data = await client.request<unknown>({
        document: module.query,
        variables,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      return hasValue(data) ? data : undefined;
    } catch (error) {
      if (!(error instanceof ClientError)) throw noAnswer(error as Error);
      return classifyAnswer(error.response, (errors) => {
        const coded = readErrors(errors);
        onErrors?.(coded);
        return coded;
      });
    }
  };
}

/** Loads what asks, and all of GraphQL with it: some 40 ms in which nothing else happens. */
export const loadGraphqlRequest = (): Promise<typeof import('graphql-request')> => import('graphql-request');

export function headersOf(module: Pick<OrderModule, 'headers'>, token: string | undefined): Record<string, string> {
  return module.headers?.(token) ?? (token === undefined ? {} : { authorization: `Bearer ${token}` });
}

/** @throws whatever the module's function throws */
export function variablesOf(module: Pick<OrderModule, 'variables'>, orderId: string): Record<string, unknown> {
  return module.variables?.(orderId) ?? { id: orderId };
}

function noAnswer(error: Error): NeedsOperator | TryAgain {
  if (error instanceof AnswerTooLarge) {
    const cause = { code: 'platform_answer_too_large' } as const;
    return new NeedsOperator(describeCause(cause), { cause });
  }
  const name = error.name === 'TimeoutError' ? `no answer in ${TIMEOUT_MS} ms` : 'no usable answer';
  return new TryAgain(`the ordering platform gave ${name}`, { sent: false, cause: { code: 'platform_unreachable' } });
}

/** Classifies an answer without an order. Undefined if the platform says that there is none. */
function classifyAnswer(
  { status: httpStatus, errors, data, headers }: ClientError['response'],
  readErrors: (errors: unknown) => CodedError[],
): undefined {
  if (httpStatus >= 300 && httpStatus < 400) {
    const cause = { code: 'platform_redirects', httpStatus } as const;
    throw new NeedsOperator(describeCause(cause), { httpStatus, cause });
  }
  const judgement = judgeErrors({ status: httpStatus, data, errors: readErrors(errors) });
  if (judgement === 'missing') return undefined;
  if (judgement === 'refused') {
    const cause = { code: 'platform_refuses_us', httpStatus } as const;
    throw new NeedsOperator(describeCause(cause), { httpStatus, cause });
  }
  if (judgement === 'id invalid') {
    const cause = { code: 'order_id_invalid', httpStatus } as const;
    throw new GiveUp(describeCause(cause), { reason: 'the order could not be read', httpStatus, cause });
  }
  throw new TryAgain(`the ordering platform answered ${httpStatus}${errors ? ' with GraphQL errors' : ''}`, {
    sent: false,
    httpStatus,
    retryAfterMs: parseRetryAfter(headers),
    cause: { code: 'platform_failing', httpStatus },
  });
}
