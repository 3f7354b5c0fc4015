import { randomUUID } from 'node:crypto';
import {
  buildClientSchema,
  getIntrospectionQuery,
  parse,
  validate,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import type { Pool } from 'pg';
import { WrongEnvironment, readConfigOf } from '../config/config.ts';
import { classifyError } from '../core/domain/classify-error.ts';
import type { FetchModule, OrderModule, PlatformError, QueryModule } from '../core/domain/order-module.ts';
import { TryAgain } from '../core/domain/errors.ts';
import { isObject } from '../core/domain/json-text.ts';
import { wordOf } from '../core/domain/member-text.ts';
import { NotDone } from '../core/operators/not-done.ts';
import {
  answerJudge,
  askPlatform,
  type PlatformAnswer,
  hasValue,
  type Verdict,
} from '../core/placements/ask-platform.ts';
import { bearer, headerKeeper, ORDER_TIMEOUT_MS } from '../core/placements/platform-headers.ts';
import { orderFetcher, variablesOf, type RequestOfModule } from '../core/placements/fetch-order.ts';
import { isRefusal } from '../core/placements/refetch-order.ts';
import { describeFailure } from '../core/egress/bounded-fetch.ts';
import { databaseClock } from '../core/postgres/database-clock.ts';
import { orderFieldsOf, sampleQuery, takesNumber, type Sample } from '../platform/draft-module.ts';
import { loadOrderModule } from '../platform/load-order-module.ts';
import { hostOf } from './ask-http.ts';
import { failed, ok, skipped, warning, type Check } from './check.ts';

const CHECK = 'query';
const FETCH = 'fetchOrder';
const BY_ID = 'make sure that fetchOrder reads the order by its id';
const NO_ACCESS =
  'check ORDER_API_URL and ORDER_API_TOKEN; if they are right, ask the operators of the ordering platform';
const TRY_ONE = 'try a real order: expediter platform check <orderId>';
const WRITE_ONE = 'the default query does not fit: write a module for ORDER_MODULE, see expediter platform init';
const FIELD_REFUSED = 'remove it from the query of ORDER_MODULE, or let the token read it';
const REFUSED = 'set ORDER_API_TOKEN to a token that may read every order';
const WORDS_LIMIT = 200;
const FAULTS_MAX = 5;
/** The most queries for one sample order, each without the fields that the one before was refused. */
const REFUSALS_MAX = 8;
/** Maximum bytes of the platform's schema. The schema of a large shop is some megabytes. */
const SCHEMA_LIMIT = 2 ** 25;
/** Maximum bytes of an answer about one order. */
const ORDER_LIMIT = 2 ** 20;
const TIMEOUT_MS = 5_000;
const OFF_S = 2;
/** An HTTP date is rounded down to whole seconds, so it may be this many seconds behind. */
const HTTP_DATE_S = 1;

/** The ordering platform's answers for an order id that does not exist. The check of the clock needs a time. */
export type PlatformAnswers = QueryAnswers | FetchAnswers;

/** The answers to our order query, and to an introspection query. */
type QueryAnswers = {
  url: string;
  module: QueryModule;
  /** Whether ORDER_MODULE maps the answers. If not, the default query must yield the canonical order. */
  isMapped: boolean;
  /** Undefined if the module's `variables` rejects a made-up id. */
  answer: PlatformAnswer | string | undefined;
  askedAt: number;
  answeredAt: number;
  /** Undefined if the first request got no answer. */
  introspection: PlatformAnswer | string | undefined;
};

/** What `fetchOrder` makes of the id. `answer` is the first answer. */
type FetchAnswers = Pick<QueryAnswers, 'askedAt' | 'answeredAt'> & {
  check: Check;
  answer: RequestOfModule['answer'];
};

/** Sends both queries. @throws WrongEnvironment, also if ORDER_MODULE cannot be used */
export async function queryPlatform(env: NodeJS.ProcessEnv): Promise<PlatformAnswers> {
  const config = readConfigOf(env, 'ORDER_API_URL', 'ORDER_API_TOKEN', 'ORDER_MODULE');
  const { ORDER_API_URL: url, ORDER_API_TOKEN: token, ORDER_MODULE } = config;
  const isMapped = ORDER_MODULE !== undefined;
  const module = await loadOrderModule(config).catch((error: Error) => {
    const problem = error.message.replace(/^ORDER_MODULE: \S+ /, '').replaceAll('\n', ' ');
    throw new WrongEnvironment(`\n  ORDER_MODULE: ${problem}. Example: /etc/expediter/map-order.ts`);
  });
  const madeUp = `expediter-doctor-${randomUUID()}`;
  if (module.fetchOrder !== undefined) return fetchMadeUp({ url, token, module }, madeUp);
  const askedAt = performance.now();
  const headers = await headerKeeper(module, { token }).get(AbortSignal.timeout(ORDER_TIMEOUT_MS)).catch(String);
  if (typeof headers === 'string') {
    const check = failed('headers', headers.replace(/^\w+: /, ''), 'fix the function headers of ORDER_MODULE');
    return { check, answer: undefined, askedAt, answeredAt: askedAt };
  }
  const ask = asker(url, headers);
  const variables = variablesFor(module, madeUp);
  const answer = variables && (await ask(module.query, variables));
  const answeredAt = performance.now();
  const isThere = typeof answer !== 'string';
  const introspection = isThere ? await ask(getIntrospectionQuery(), {}, SCHEMA_LIMIT) : undefined;
  return { url, module, isMapped, answer, askedAt, answeredAt, introspection };
}

async function fetchMadeUp(
  about: { url: string; token: string | undefined; module: FetchModule },
  madeUp: string,
): Promise<FetchAnswers> {
  const askedAt = performance.now();
  const requests: RequestOfModule[] = [];
  const fetchOrder = orderFetcher({ ...about, warn: () => {}, onRequest: (request) => void requests.push(request) });
  const outcome = await fetchOrder(madeUp).catch((error: Error) => error);
  const answeredAt = performance.now();
  const statuses = requests.map(({ answer }) => answer?.status ?? 'no answer');
  const check = assessFetched(`${hostOf(about.url)} (${statuses.join(', ') || 'no request'})`, outcome);
  // The time of one answer is known only if there were no others.
  return { check, answer: requests.length === 1 ? requests[0]?.answer : undefined, askedAt, answeredAt };
}

function assessFetched(host: string, outcome: object | null): Check {
  if (outcome === null) return ok(FETCH, `${host} answers: no such order. A wrong path is answered in the same way`);
  if (!(outcome instanceof Error)) return warning(FETCH, `${host} has an order for a made-up id`, BY_ID);
  const { problem } = classifyError(outcome);
  if (outcome instanceof TryAgain || isRefusal(outcome)) return failed(FETCH, `${host}: ${problem}`, NO_ACCESS);
  return warning(FETCH, `${host}, for a made-up order id: ${problem}`, TRY_ONE);
}

/** Makes a function that returns the platform's answer, or why there is none. */
function asker(url: string, headers: Record<string, string>) {
  return (query: string, variables: Record<string, unknown>, limit = ORDER_LIMIT): Promise<PlatformAnswer | string> =>
    askPlatform({ url, headers }, { query, variables, limit, signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
      (error: unknown) => describeFailure(error, TIMEOUT_MS),
    );
}

const headersFor = (token: string | undefined, header: string | undefined): Record<string, string> =>
  header === undefined ? bearer(token) : { [header]: token ?? '' };

/** Asks the platform for its schema. @param header the header that takes the token; by default it is a bearer token */
export async function fetchSchema(env: NodeJS.ProcessEnv, header: string | undefined): Promise<GraphQLSchema> {
  const { ORDER_API_URL: url, ORDER_API_TOKEN: token } = readConfigOf(env, 'ORDER_API_URL', 'ORDER_API_TOKEN');
  const answer = await asker(url, headersFor(token, header))(getIntrospectionQuery(), {}, SCHEMA_LIMIT);
  const schema = readSchema(answer);
  if (schema !== undefined) return schema;
  const found = typeof answer === 'string' ? answer : `it answers ${answer.status} without a schema`;
  throw new Error(
    `${hostOf(url)} does not give its schema: ${found}. Check ORDER_API_URL and ORDER_API_TOKEN, or --header. If the ` +
      'platform publishes no schema, give it by --schema <file>, or begin with a skeleton by --without-schema.',
  );
}

/**
 * Fetches an order with all fields that a draft may choose, but without those that the platform refuses.
 * @throws Error without a value of the order
 */
export async function fetchSample(
  env: NodeJS.ProcessEnv,
  { schema, header, orderId }: { schema: GraphQLSchema; header: string | undefined; orderId: string },
): Promise<Sample> {
  const { ORDER_API_URL: url, ORDER_API_TOKEN: token } = readConfigOf(env, 'ORDER_API_URL', 'ORDER_API_TOKEN');
  const ask = asker(url, headersFor(token, header));
  const refusals: string[] = [];
  for (const field of orderFieldsOf(schema)) {
    const refused = new Set<string>();
    for (let tries = 0; tries < REFUSALS_MAX; tries += 1) {
      const id = takesNumber(field) ? Number(orderId) : orderId;
      const query = sampleQuery(schema, field, refused);
      const answer = await ask(query, { id });
      if (typeof answer === 'string') throw new Error(`The order cannot be fetched. ${hostOf(url)}: ${answer}`);
      const order = field.steps.reduce<unknown>((at, { name }) => (isObject(at) ? at[name] : undefined), answer.data);
      const errors = answer.errors.filter((each): each is PlatformError => isObject(each));
      const codes = errors.map(({ extensions }) => wordOf(extensions?.['code']) ?? 'an error without a code');
      const paths = errors.map(({ path }) =>
        Array.isArray(path) ? path.filter((name) => typeof name === 'string') : [],
      );
      const below = paths.map((path) => path.slice(field.steps.length).join('.')).filter((path) => path !== '');
      if (errors.length === 0 && isObject(order)) {
        const denied = await asker(url, headersFor('expediter-asks-with-a-wrong-token', header))(query, { id });
        const judge = answerJudge({ query }, () => {});
        const hidesToken = typeof denied === 'object' && judge(denied).judgement === 'order refused';
        return { field, order, refused, hidesToken };
      }
      const isMissing = codes.length > 0 && codes.every((code) => code === 'NOT_FOUND');
      if (!isMissing && (errors.length > 0 || answer.data === undefined))
        refusals.push(`${answer.status}, ${codes.join(', ') || 'no data'}`);
      if (below.length === 0) break;
      for (const path of below) refused.add(path);
    }
  }
  if (refusals.length === 0) {
    const hint = 'Perhaps this is its code or number: the query finds orders by';
    throw new NotDone(404, `The ordering platform has no order with this id. ${hint} ${orderFieldsOf(schema)[0].arg}.`);
  }
  throw new Error(
    `The order cannot be fetched. ${hostOf(url)} answers ${refusals.at(-1)}. Check the id, ORDER_API_TOKEN, or --header.`,
  );
}

function variablesFor(module: QueryModule, id: string): Record<string, unknown> | undefined {
  try {
    return variablesOf(module, id);
  } catch {
    return undefined;
  }
}

/** Checks that the platform answers the query, and that its schema has all queried fields. */
export function examinePlatform(answered: PlatformAnswers): Check[] {
  if ('check' in answered) return [answered.check];
  const { introspection, module, isMapped } = answered;
  const thrown: Check[] = [];
  const judge = answerJudge(module, (problem) => {
    thrown.push(warning('errorCode', problem, 'fix errorCode of ORDER_MODULE'));
  });
  const fix = isMapped ? 'fix the query of ORDER_MODULE' : WRITE_ONE;
  const schema = readSchema(introspection);
  const fit = introspection === undefined ? [] : [examineSchema(module.query, schema, fix)];
  return [examineQuery(answered, judge, fix), ...thrown, ...fit];
}

function examineQuery(
  { url, answer, module, isMapped }: QueryAnswers,
  judge: ReturnType<typeof answerJudge>,
  fix: string,
): Check {
  const host = hostOf(url);
  if (answer === undefined) {
    return warning(CHECK, 'the module makes no variables for a made-up order id, so the query was not tried', TRY_ONE);
  }
  if (typeof answer === 'string') {
    return failed(CHECK, `${host}: ${answer}`, 'check ORDER_API_URL, DNS and the network to the ordering platform');
  }
  return assess(host, answer, judge(answer), fix) ?? assessData(host, answer, isMapped ? module : undefined);
}

function readSchema(introspection: QueryAnswers['introspection']): GraphQLSchema | undefined {
  const data = typeof introspection === 'object' ? introspection.data : undefined;
  try {
    // `assumeValid`: we accept a platform's schema that is not fully valid, because many large schemas are not.
    return data ? buildClientSchema(data as IntrospectionQuery, { assumeValid: true }) : undefined;
  } catch {
    return undefined;
  }
}

function examineSchema(query: string, schema: GraphQLSchema | undefined, fix: string): Check {
  if (schema === undefined) return ok('schema', 'was not compared: the platform does not publish its schema');
  const faults = validate(schema, parse(query)).map((error) => toText(error.message));
  if (faults.length === 0) return ok('schema', 'has all fields of the query');
  return failed('schema', `does not fit the query: ${listed(faults)}`, fix);
}

function listed(faults: readonly string[]): string {
  const more = faults.length - FAULTS_MAX;
  return `${faults.slice(0, FAULTS_MAX).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function assess(
  host: string,
  { status, headers, data }: PlatformAnswer,
  { judgement, errors, fields }: Verdict,
  fix: string,
): Check | undefined {
  if (judgement === 'answered') return undefined;
  if (judgement === 'missing') return ok(CHECK, `${host} answers: no such order`);
  if (judgement === 'redirected') {
    return failed(CHECK, `${host} redirects (${status})`, 'set ORDER_API_URL to the address that it redirects to');
  }
  if (judgement === 'refused') return failed(CHECK, `${host} refuses us (${status})`, REFUSED);
  if (judgement === 'field refused') return failed(CHECK, `${host} refuses us ${listed(fields)}`, FIELD_REFUSED);
  if (judgement === 'query refused') {
    return failed(CHECK, `${host} refuses the query: ${listed(errors.map(({ error }) => toText(error.message)))}`, fix);
  }
  if (judgement === 'order refused') {
    return warning(CHECK, `${host} refuses us a made-up order, or a field of it`, `${REFUSED}, and ${TRY_ONE}`);
  }
  if (judgement === 'id invalid') {
    return warning(CHECK, `${host} calls a made-up order id invalid, so the rest of the query was not tried`, TRY_ONE);
  }
  if (judgement === 'unreadable') {
    const type = headers.get('content-type')?.split(';', 1)[0] ?? 'no content type';
    const found = `${host} answers ${status} with ${type}, not GraphQL`;
    return failed(CHECK, found, 'set ORDER_API_URL to the GraphQL endpoint');
  }
  return assessFailing(host, { status, data, words: toText(errors[0]?.error.message) }, fix);
}

function assessFailing(
  host: string,
  { status, data, words }: Pick<PlatformAnswer, 'status' | 'data'> & { words: string },
  fix: string,
): Check {
  if (status === 429 || status >= 500) {
    const fixOfTheirs = 'ask the operators of the ordering platform; orders wait until the platform answers';
    return failed(CHECK, `${host} answers ${status}`, fixOfTheirs);
  }
  // An answer without data means that the platform refused the query itself.
  if (data === undefined || status >= 400) {
    const tryOne = `${fix}; if the error is about the made-up id, ${TRY_ONE}`;
    return failed(CHECK, `${host} refuses the query: ${words}`, tryOne);
  }
  const found = `${host} accepted the query, but answers with an error for a made-up order id: ${words}`;
  return warning(CHECK, found, TRY_ONE);
}

/** Assesses an answer without errors. @param mapper the module of ORDER_MODULE, if it is set */
function assessData(host: string, answer: PlatformAnswer, mapper: OrderModule | undefined): Check {
  const data = (answer.data ?? {}) as { order?: unknown };
  const order = mapper === undefined ? data.order : mapped(data, mapper);
  if (order === null) return ok(CHECK, `${host} answers: no such order`);
  if (order === undefined) {
    return failed(CHECK, `the answer of ${host} has no field "order"`, WRITE_ONE);
  }
  return warning(CHECK, `${host} has an order for a made-up id`, 'make sure that the query selects the order by $id');
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
 * Makes the platform's message about the query safe for a terminal, and removes its full stop. The message can quote
 * only the query and the made-up id, which are not secret.
 */
function toText(message: unknown): string {
  return typeof message === 'string'
    ? message
        .slice(0, WORDS_LIMIT)
        .replaceAll(/\p{Cc}/gu, ' ')
        .replace(/\.$/, '')
    : 'it does not say why';
}

/**
 * Compares Postgres's clock with two other clocks. The service uses only Postgres's clock, for signatures too. The
 * other clocks show whether it is right.
 */
export async function examineClock(pool: Pool, answered: Promise<PlatformAnswers>): Promise<Check[]> {
  const fromPlatform = answered.catch(() => undefined);
  const clock = databaseClock(pool);
  await clock.follow();
  const machineS = (Date.now() - clock.now().getTime()) / 1000;
  return [compareClock('this machine', machineS, OFF_S), platformClock(await fromPlatform, clock.now)];
}

function platformClock(answered: PlatformAnswers | undefined, now: () => Date): Check {
  const { answer, askedAt = 0, answeredAt = 0 } = answered ?? {};
  const date = typeof answer !== 'object' ? Number.NaN : Date.parse(answer.headers.get('date') ?? '');
  if (Number.isNaN(date)) return skipped('ordering platform', 'its answer has no time');
  const sinceAsked = performance.now() - (askedAt + answeredAt) / 2;
  const off = (date + (HTTP_DATE_S * 1000) / 2 - (now().getTime() - sinceAsked)) / 1000;
  return compareClock('ordering platform', off, OFF_S + HTTP_DATE_S);
}

function compareClock(whose: string, offS: number, most: number): Check {
  const found = `${Math.abs(offS).toFixed(1)} s ${offS < 0 ? 'behind' : 'ahead of'} Postgres`;
  if (Math.abs(offS) <= most) return ok(whose, found);
  return warning(
    whose,
    found,
    "check which clock is wrong (NTP); if it is Postgres's, signed webhooks are dropped as too old",
  );
}
