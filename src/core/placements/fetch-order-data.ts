import { ClientError, GraphQLClient } from 'graphql-request';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { OrderModule } from '../domain/order-module.ts';
import { AnswerTooLarge, boundedFetch } from '../egress/bounded-fetch.ts';
import { parseRetryAfter } from '../domain/parse-retry-after.ts';
import { describeCause } from '../domain/placement-cause.ts';
import { askMapper } from './ask-mapper.ts';
import { hasValue } from './has-value.ts';
import { judgeErrors } from './judge-errors.ts';
import { errorReader, type CodedError } from './read-errors.ts';

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
  const client = new GraphQLClient(url, { headers: headersOf(module, token), fetch: boundedFetch(ORDER_LIMIT) });
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
      return classifyFailure(error, (errors) => {
        const coded = readErrors(errors);
        onErrors?.(coded);
        return coded;
      });
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
function classifyFailure(error: unknown, readErrors: (errors: unknown) => CodedError[]): undefined {
  if (error instanceof AnswerTooLarge) {
    const cause = { code: 'platform_answer_too_large' } as const;
    throw new NeedsOperator(describeCause(cause), { cause });
  }
  if (!(error instanceof ClientError)) {
    const name = (error as Error).name === 'TimeoutError' ? `no answer in ${TIMEOUT_MS} ms` : 'no usable answer';
    throw new TryAgain(`the ordering platform gave ${name}`, { sent: false, cause: { code: 'platform_unreachable' } });
  }
  const { status: httpStatus, errors, data } = error.response;
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
  const { headers } = error.response as { headers?: Headers };
  throw new TryAgain(`the ordering platform answered ${httpStatus}${errors ? ' with GraphQL errors' : ''}`, {
    sent: false,
    httpStatus,
    retryAfterMs: parseRetryAfter(headers),
    cause: { code: 'platform_failing', httpStatus },
  });
}
