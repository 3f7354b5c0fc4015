import { buildClientSchema, parse, validate, type GraphQLSchema, type IntrospectionQuery } from 'graphql';
import type { OrderModule } from '../core/domain/order-module.ts';
import { hasValue } from '../core/placements/has-value.ts';
import { judgeErrors } from '../core/placements/judge-errors.ts';
import { errorReader } from '../core/placements/read-errors.ts';
import type { HttpAnswer } from './ask-http.ts';
import { hostOf, kindOf } from './ask-http.ts';
import type { AskedPlatform } from './ask-platform.ts';
import { compareShape } from './compare-shape.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('platform');
const CHECK = 'query';
const WORDS_LIMIT = 200;
const TRY_ONE = 'try it with a real one: expediter platform check <orderId>';

/** Faults that are told at once. */
const FAULTS_MAX = 5;

/** Checks that the platform answers the query, that its schema has all that is asked, and that an order can come of it. */
export function examinePlatform(asked: AskedPlatform): Finding[] {
  const { introspection, module, isMapped } = asked;
  const thrown: Finding[] = [];
  const readErrors = errorReader(module, (problem) => {
    thrown.push(warning('errorCode', problem, 'mend errorCode of ORDER_MODULE'));
  });
  const mend = isMapped ? 'mend the query of ORDER_MODULE' : 'mend ORDER_QUERY_FILE';
  const schema = readSchema(introspection);
  const fit = introspection === undefined ? [] : [examineSchema(module.query, schema, mend)];
  return [
    examineQuery(asked, readErrors, mend),
    ...thrown,
    ...fit,
    ...(isMapped ? [] : examineShape(module.query, schema)),
  ];
}

function examineQuery(
  { url, answer, module, isMapped }: AskedPlatform,
  readErrors: ReturnType<typeof errorReader>,
  mend: string,
): Finding {
  const host = hostOf(url);
  if (answer === undefined) {
    return warning(CHECK, 'the module makes no variables of a made-up order id, so it was not tried', TRY_ONE);
  }
  if (typeof answer === 'string') {
    return failed(CHECK, `${host}: ${answer}`, 'look at ORDER_API_URL, DNS and the network to the ordering platform');
  }
  return assess(host, answer, readErrors, mend) ?? assessData(host, answer, isMapped ? module : undefined);
}

function readSchema(introspection: AskedPlatform['introspection']): GraphQLSchema | undefined {
  const { json } = (typeof introspection === 'object' ? introspection : {}) as {
    json?: { data?: IntrospectionQuery | null } | null;
  };
  try {
    // Whether the platform's schema is valid in itself is not ours to judge, and large ones are not.
    return json?.data ? buildClientSchema(json.data, { assumeValid: true }) : undefined;
  } catch {
    return undefined;
  }
}

function examineSchema(query: string, schema: GraphQLSchema | undefined, mend: string): Finding {
  if (schema === undefined) return ok('schema', 'was not compared: the platform does not tell its schema');
  const faults = validate(schema, parse(query)).map((error) => legible(error.message));
  if (faults.length === 0) return ok('schema', 'has all that the query asks for');
  return failed('schema', `does not fit the query: ${listed(faults)}`, mend);
}

/** Aliases alone must yield the canonical shape. A mapper may make it of anything. */
function examineShape(query: string, schema: GraphQLSchema | undefined): Finding[] {
  const { wrong, odd } = compareShape(query, schema);
  const module = 'what aliases cannot say, a module can: ORDER_MODULE';
  return [
    wrong.length === 0
      ? ok('shape', 'an order can come of the query')
      : failed('shape', `no order can come of the query: ${listed(wrong)}`, `mend ORDER_QUERY_FILE; ${module}`),
    ...(odd.length === 0 ? [] : [warning('shape', listed(odd), `mend ORDER_QUERY_FILE; ${module}`)]),
  ];
}

function listed(faults: readonly string[]): string {
  const more = faults.length - FAULTS_MAX;
  return `${faults.slice(0, FAULTS_MAX).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

type GraphQLAnswer = { data?: { order?: unknown } | null; errors?: unknown };

function assess(
  host: string,
  answer: HttpAnswer,
  readErrors: ReturnType<typeof errorReader>,
  mend: string,
): Finding | undefined {
  const { status } = answer;
  if (status >= 300 && status < 400) {
    return failed(CHECK, `${host} redirects (${status})`, 'set ORDER_API_URL to where it redirects to');
  }
  const { data, errors: given } = (typeof answer.json === 'object' ? (answer.json ?? {}) : {}) as GraphQLAnswer;
  const errors = readErrors(given);
  const judgement = judgeErrors({ status, data, errors });
  if (judgement === 'missing') return ok(CHECK, `${host} answers: no such order`);
  if (judgement === 'refused') {
    return failed(CHECK, `${host} refuses us (${status})`, 'set ORDER_API_TOKEN to one that may read any order');
  }
  if (status === 429 || status >= 500) {
    return failed(CHECK, `${host} answers ${status}`, 'ask whoever runs the ordering platform; orders wait meanwhile');
  }
  if (data === undefined && errors.length === 0) {
    return failed(CHECK, `${host} answers ${kindOf(answer)}, not GraphQL`, 'set ORDER_API_URL to the GraphQL endpoint');
  }
  if (judgement === 'id invalid') {
    return warning(CHECK, `${host} calls a made-up order id invalid, so the rest of the query was not tried`, TRY_ONE);
  }
  if (errors.length === 0) return undefined;
  const words = legible(errors[0]?.error.message);
  // Without data, nothing was looked up: the query was refused before.
  if (data === undefined || status === 400) {
    return failed(CHECK, `${host} refuses the query: ${words}`, `${mend}; if it is about the made-up id, ${TRY_ONE}`);
  }
  return warning(CHECK, `${host} took the query, but answers an error for a made-up order id: ${words}`, TRY_ONE);
}

/** Assesses an answer without errors. @param mapper that of ORDER_MODULE */
function assessData(host: string, { json }: HttpAnswer, mapper: OrderModule | undefined): Finding {
  const data = (json as GraphQLAnswer).data ?? {};
  const order = mapper === undefined ? data.order : mapped(data, mapper);
  if (order === null) return ok(CHECK, `${host} answers: no such order`);
  if (order === undefined) {
    return failed(CHECK, `the answer of ${host} has no field "order"`, 'alias it in ORDER_QUERY_FILE: order: …');
  }
  return warning(CHECK, `${host} has an order for a made-up id`, 'see that the query asks for the order of $id');
}

function mapped(data: object, { toCanonicalOrder }: OrderModule): object | null {
  if (!hasValue(data)) return null;
  try {
    return toCanonicalOrder(data);
  } catch {
    return {};
  }
}

/**
 * The platform's message about the query, made fit for a terminal and without its full stop. It quotes only the query
 * and the made-up id, which are no secrets.
 */
function legible(message: unknown): string {
  return typeof message === 'string'
    ? message
        .slice(0, WORDS_LIMIT)
        .replaceAll(/\p{Cc}/gu, ' ')
        .replace(/\.$/, '')
    : 'it does not say why';
}
