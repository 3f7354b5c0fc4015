import { randomUUID } from 'node:crypto';
import { WrongEnvironment, readConfigOf } from '../config.ts';
import { readOrderQuery } from '../core/placements/refetch-order.ts';
import { askHttp, type HttpAnswer } from './ask-http.ts';

/** The ordering platform's answer to our own query for an order that does not exist, and when it was asked. */
export type AskedPlatform = { url: string; answer: HttpAnswer | string; askedAt: number; answeredAt: number };

/** @throws WrongEnvironment, also if ORDER_QUERY_FILE holds no query */
export async function askPlatform(env: NodeJS.ProcessEnv): Promise<AskedPlatform> {
  const config = readConfigOf(env, 'ORDER_API_URL', 'ORDER_API_TOKEN', 'ORDER_QUERY_FILE');
  const { ORDER_API_URL: url, ORDER_API_TOKEN: token } = config;
  const query = await readOrderQuery(config.ORDER_QUERY_FILE).catch(() => {
    throw new WrongEnvironment(
      '\n  ORDER_QUERY_FILE: holds no GraphQL document. Example: /etc/expediter/order.graphql',
    );
  });
  const askedAt = performance.now();
  const answer = await askHttp(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/graphql-response+json, application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query, variables: { id: `expediter-doctor-${randomUUID()}` } }),
  });
  return { url, answer, askedAt, answeredAt: performance.now() };
}
