import type { HttpAnswer } from './ask-http.ts';
import { hostOf, kindOf } from './ask-http.ts';
import type { AskedPlatform } from './ask-platform.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('platform');
const CHECK = 'query';
const WORDS_LIMIT = 200;

/** Checks that the ordering platform answers the query for orders. */
export function examinePlatform({ url, answer }: AskedPlatform): Finding {
  const host = hostOf(url);
  if (typeof answer === 'string') {
    return failed(CHECK, `${host}: ${answer}`, 'look at ORDER_API_URL, DNS and the network to the ordering platform');
  }
  return assess(host, answer);
}

type GraphQLAnswer = {
  data?: { order?: unknown } | null;
  errors?: { message?: unknown; path?: unknown; extensions?: { code?: unknown } }[];
};

function assess(host: string, answer: HttpAnswer): Finding {
  const { status } = answer;
  if (status >= 300 && status < 400) {
    return failed(CHECK, `${host} redirects (${status})`, 'set ORDER_API_URL to where it redirects to');
  }
  const body = (typeof answer.json === 'object' && answer.json !== null ? answer.json : {}) as GraphQLAnswer;
  const errors = Array.isArray(body.errors) ? body.errors : [];
  const codes = errors.map((error) => error.extensions?.code);
  if (status === 401 || status === 403 || codes.includes('UNAUTHENTICATED') || codes.includes('FORBIDDEN')) {
    return failed(CHECK, `${host} refuses us (${status})`, 'set ORDER_API_TOKEN to one that may read any order');
  }
  if (status === 429 || status >= 500) {
    return failed(CHECK, `${host} answers ${status}`, 'ask whoever runs the ordering platform; orders wait meanwhile');
  }
  if (body.data === undefined && errors.length === 0) {
    return failed(CHECK, `${host} answers ${kindOf(answer)}, not GraphQL`, 'set ORDER_API_URL to the GraphQL endpoint');
  }
  if (codes.includes('NOT_FOUND')) return ok(CHECK, `${host} answers: no such order`);
  if (codes.includes('BAD_USER_INPUT')) {
    return warning(
      CHECK,
      `${host} calls a made-up order id invalid, so the rest of the query was not tried`,
      'place an order to see it work',
    );
  }
  if (errors.length > 0) {
    const words = legible(errors[0]?.message);
    return failed(
      CHECK,
      `${host} refuses the query: ${words}`,
      'mend ORDER_QUERY_FILE, or ask whoever runs the platform',
    );
  }
  const order = body.data?.order;
  if (order === null) return ok(CHECK, `${host} answers: no such order`);
  if (order === undefined) {
    return failed(CHECK, `the answer of ${host} has no field "order"`, 'alias it in ORDER_QUERY_FILE: order: …');
  }
  return warning(CHECK, `${host} has an order for a made-up id`, 'see that ORDER_QUERY_FILE asks for the order of $id');
}

/** The platform's message about the query, made fit for a terminal. It quotes only the query, which is no secret. */
function legible(message: unknown): string {
  return typeof message === 'string'
    ? message.slice(0, WORDS_LIMIT).replaceAll(/\p{Cc}/gu, ' ')
    : 'it does not say why';
}
