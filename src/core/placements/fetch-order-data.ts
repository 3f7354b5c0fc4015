import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { describeCause } from '../domain/explain-cause.ts';
import { parseRetryAfter } from '../domain/classify-error.ts';
import type { OrderModule } from '../domain/order-module.ts';
import { AnswerTooLarge, describeFailure } from '../egress/bounded-fetch.ts';
import { askMapper } from './ask-mapper.ts';
import {
  answerJudge,
  askPlatform,
  type CodedError,
  type Judgement,
  type PlatformAnswer,
  hasValue,
} from './ask-platform.ts';
/** Fetches one order. @returns GraphQL's `data`, or undefined if the platform does not have the order (yet) */
type FetchOrderData = (serviceOrderId: string) => Promise<unknown>;

const ORDER_TIMEOUT_MS = 8_000;
/** Maximum size of one order in bytes. An order of 300 items with all their details is below 1 MiB. */
const ORDER_LIMIT = 4 * 2 ** 20;

/**
 * Makes a function that fetches one order and throws only TryAgain, NeedsOperator or GiveUp. The errors of the GraphQL
 * client are not passed on, because their messages contain the whole response and therefore member data.
 */
export function orderDataFetcher(about: {
  url: string;
  token: string | undefined;
  module: Omit<OrderModule, 'toCanonicalOrder'>;
  /** Called once if the module's `errorCode` throws. */
  warn: (problem: string) => void;
  /** Called with the errors of a response. */
  onErrors?: (errors: readonly CodedError[]) => void;
}): FetchOrderData {
  const { url, token, module, onErrors } = about;
  const judge = answerJudge(module, about.warn);
  const headers = headersOf(module, token);
  return async (serviceOrderId) => {
    const variables = askMapper(() => variablesOf(module, serviceOrderId));
    const query = { query: module.query, variables, limit: ORDER_LIMIT, timeoutMs: ORDER_TIMEOUT_MS };
    const answer = await askPlatform({ url, headers }, query).catch((error: unknown) => {
      throw noAnswer(error, url);
    });
    const { judgement, errors } = judge(answer);
    if (errors.length > 0) onErrors?.(errors);
    if (judgement === 'answered') return hasValue(answer.data) ? answer.data : undefined;
    if (judgement === 'missing') return undefined;
    throw failureOf(judgement, answer);
  };
}

export function headersOf(module: Pick<OrderModule, 'headers'>, token: string | undefined): Record<string, string> {
  return module.headers?.(token) ?? (token === undefined ? {} : { authorization: `Bearer ${token}` });
}

/** @throws any error of the module's function */
export function variablesOf(module: Pick<OrderModule, 'variables'>, orderId: string): Record<string, unknown> {
  return module.variables?.(orderId) ?? { id: orderId };
}

function noAnswer(error: unknown, url: string): NeedsOperator | TryAgain {
  if (error instanceof AnswerTooLarge) {
    const cause = { code: 'platform_answer_too_large' } as const;
    return new NeedsOperator(describeCause(cause), { cause });
  }
  const cause = { code: 'platform_unreachable' } as const;
  const why = describeFailure(error, ORDER_TIMEOUT_MS);
  return new TryAgain(`${describeCause(cause)}. ${new URL(url).host}: ${why}`, { sent: false, cause });
}

/** The error that says what an answer without an order means for the order. */
function failureOf(
  judgement: Exclude<Judgement, 'answered' | 'missing'>,
  { status: httpStatus, headers, errors }: PlatformAnswer,
): NeedsOperator | GiveUp | TryAgain {
  if (judgement === 'id invalid') {
    const cause = { code: 'order_id_invalid', httpStatus } as const;
    return new GiveUp(describeCause(cause), { reason: 'the order could not be read', httpStatus, cause });
  }
  if (judgement === 'failing' || judgement === 'not GraphQL') {
    const isOther = judgement === 'not GraphQL' && httpStatus < 300;
    const what = isOther ? ', but not in GraphQL' : errors.length > 0 ? ' with GraphQL errors' : '';
    const retryAfterMs = parseRetryAfter(headers);
    const cause = { code: 'platform_failing', httpStatus } as const;
    const problem = `the ordering platform answered ${httpStatus}${what}`;
    return new TryAgain(problem, { sent: false, httpStatus, retryAfterMs, cause });
  }
  const cause = { code: REFUSALS[judgement], httpStatus } as const;
  return new NeedsOperator(describeCause(cause), { httpStatus, cause });
}

const REFUSALS = {
  redirected: 'platform_redirects',
  refused: 'platform_refuses_us',
  'order refused': 'platform_refuses_order',
} as const;
