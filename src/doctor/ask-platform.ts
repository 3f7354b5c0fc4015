import { randomUUID } from 'node:crypto';
import { getIntrospectionQuery } from 'graphql';
import { WrongEnvironment, readConfigOf } from '../config.ts';
import type { OrderModule } from '../core/domain/order-module.ts';
import { headersOf, variablesOf } from '../core/placements/fetch-order-data.ts';
import { loadOrderModule } from '../platform/load-order-module.ts';
import { askHttp, type HttpAnswer } from './ask-http.ts';

/** The ordering platform's answers to our own query for an order that does not exist, and to a query of its schema. */
export type AskedPlatform = {
  url: string;
  module: OrderModule;
  /** Whether `module` is that of ORDER_MODULE, and its answers are mapped by code. */
  isMapped: boolean;
  /** Undefined if `variables` of the module takes no made-up id. */
  answer: HttpAnswer | string | undefined;
  askedAt: number;
  answeredAt: number;
  /** Undefined if the platform gave no answer before. */
  introspection: HttpAnswer | string | undefined;
};

/** The types of a large shop are some megabytes. */
const SCHEMA_LIMIT = 2 ** 25;

/** @throws WrongEnvironment, also if ORDER_MODULE or ORDER_QUERY_FILE cannot be used */
export async function askPlatform(env: NodeJS.ProcessEnv): Promise<AskedPlatform> {
  const config = readConfigOf(env, 'ORDER_API_URL', 'ORDER_API_TOKEN', 'ORDER_QUERY_FILE', 'ORDER_MODULE');
  const { ORDER_API_URL: url, ORDER_API_TOKEN: token, ORDER_MODULE } = config;
  const isMapped = ORDER_MODULE !== undefined;
  const module = await loadOrderModule(config).catch((error: Error) => {
    const [name, example] = isMapped
      ? ['ORDER_MODULE', '/etc/expediter/map-order.ts']
      : ['ORDER_QUERY_FILE', '/etc/expediter/order.graphql'];
    const problem = error.message.replace(/^ORDER_\w+:? \S+ /, '').replaceAll('\n', ' ');
    throw new WrongEnvironment(`\n  ${name}: ${problem}. Example: ${example}`);
  });
  const headers = {
    'content-type': 'application/json',
    accept: 'application/graphql-response+json, application/json',
    ...headersOf(module, token),
  };
  const ask = (query: string, variables: object, limit?: number): Promise<HttpAnswer | string> =>
    askHttp(url, { method: 'POST', headers, body: JSON.stringify({ query, variables }) }, limit);

  const variables = variablesFor(module, `expediter-doctor-${randomUUID()}`);
  const askedAt = performance.now();
  const answer = variables && (await ask(module.query, variables));
  const answeredAt = performance.now();
  const isThere = typeof answer !== 'string';
  const introspection = isThere ? await ask(getIntrospectionQuery(), {}, SCHEMA_LIMIT) : undefined;
  return { url, module, isMapped, answer, askedAt, answeredAt, introspection };
}

function variablesFor(module: OrderModule, id: string): object | undefined {
  try {
    return variablesOf(module, id);
  } catch {
    return undefined;
  }
}
