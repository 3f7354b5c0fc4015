/**
 * A sample ordering platform: it holds orders and answers `order(id: ID!)` in real GraphQL, so a wrong query or a
 * missing field fails here as it would there.
 */
import {
  buildSchema,
  execute,
  parse,
  validate,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLError,
} from 'graphql';
import { sendEndless } from '../network/send-endless.ts';
import { readBody, sendJson, serveHttp } from '../network/serve-http.ts';

export type OrderingPlatformOptions = {
  /** The required `Authorization: Bearer`. Without it anybody may ask. */
  token?: string;
  port?: number;
};

/** The answer in place of the order: 503, none at all, `order: null`, one without an end, a redirect, errors next to `order: null`, or anything. */
export type PlatformFault =
  | 'down'
  | 'hang'
  | 'null'
  | 'endless'
  | { redirect: string }
  | { order: unknown }
  | { errors: { message: string; extensions?: { code?: string } & Record<string, unknown> }[] };

export type OrderingPlatform = {
  /** The GraphQL endpoint. */
  readonly url: string;
  /** Orders by id, in the canonical shape. May be changed at any time. */
  readonly orders: Map<string, unknown>;
  /** The requested ids so far, oldest first. */
  readonly requests: readonly string[];
  /** Returns a fault by order id. May be set and removed at any time. */
  answer: ((id: string) => PlatformFault | undefined | Promise<undefined>) | undefined;
  /** Safe to repeat. */
  stop(): Promise<void>;
};

const schema = buildSchema(`
  type Query { order(id: ID!): Order }

  type Order {
    serviceOrderId: ID!
    locationId: ID!
    member: Member!
    fulfillment: Fulfillment!
    items: [LineItem!]!
    money: Money!
    discounts: [Part!]
    fees: [Part!]
    taxes: [TaxPart!]
    notes: String
    placedAt: String!
    cancelledAt: String
    cancelReason: String
  }
  type Member { id: ID!, name: String!, email: String, phone: String }

  enum FulfillmentType { pickup delivery }
  type Fulfillment { type: FulfillmentType!, destination: Destination, requestedAt: String }
  type Destination {
    line1: String!
    line2: String
    city: String
    postalCode: String
    region: String
    country: String
    latitude: Float
    longitude: Float
    instructions: String
  }

  type LineItem {
    serviceItemId: ID!
    name: String!
    quantity: Int!
    unitPrice: Int
    notes: String
    ageRestricted: Boolean
    modifiers: [Modifier!]
  }
  type Modifier {
    serviceModifierId: ID!
    name: String!
    quantity: Int!
    unitPrice: Int
    modifiers: [Modifier!]
  }

  type Part { name: String!, amount: Int! }
  type TaxPart { name: String!, amount: Int!, rate: Float }

  "Amounts are in minor units of the currency."
  type Money { subtotal: Int!, discount: Int, tax: Int!, tip: Int!, fee: Int!, total: Int!, currency: String!, pricesIncludeTax: Boolean }
`);

type GraphQLRequest = { query?: string; variables?: Record<string, unknown>; operationName?: string };

type Run = Pick<ExecutionArgs, 'rootValue' | 'variableValues' | 'operationName'>;

/** Makes a function that runs queries, and reads each text once, as a server that is asked the same again and again. */
function queryRunner(): (query: string, about: Run) => Promise<ExecutionResult> {
  const known = new Map<string, DocumentNode>();
  return async (query, about) => {
    let document = known.get(query);
    if (document === undefined) {
      try {
        document = parse(query);
      } catch (error) {
        return { errors: [error as GraphQLError] };
      }
      const errors = validate(schema, document);
      if (errors.length > 0) return { errors };
      known.set(query, document);
    }
    return execute({ schema, document, ...about });
  };
}

/** Resolves when it serves. */
export async function startOrderingPlatform(options: OrderingPlatformOptions = {}): Promise<OrderingPlatform> {
  const orders = new Map<string, unknown>();
  const requests: string[] = [];
  const run = queryRunner();

  const server = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    if (request.method !== 'POST' || request.url !== '/graphql') {
      sendJson(response, 404, { errors: [{ message: 'only POST /graphql is here' }] });
      return;
    }
    if (options.token !== undefined && request.headers.authorization !== `Bearer ${options.token}`) {
      sendJson(response, 401, { errors: [{ message: 'who is asking?', extensions: { code: 'UNAUTHENTICATED' } }] });
      return;
    }
    const { query, variables, operationName } = JSON.parse(body.toString()) as GraphQLRequest;
    // A fault is about an id, and only the executed query knows it: the id may be inline or in a variable.
    let fault: PlatformFault | undefined;
    const order = async ({ id }: { id: string }): Promise<unknown> => {
      requests.push(id);
      fault = await platform.answer?.(id);
      return fault === undefined ? orders.get(id) : null;
    };
    const result = await run(query ?? '', { rootValue: { order }, variableValues: variables, operationName });
    if (fault === 'hang') return;
    if (fault === 'endless') return sendEndless(response);
    if (typeof fault === 'object' && 'redirect' in fault) {
      response.writeHead(307, { location: fault.redirect }).end();
    } else if (fault === 'down') sendJson(response, 503, { errors: [{ message: 'the platform is down' }] });
    else if (typeof fault === 'object' && 'order' in fault) sendJson(response, 200, { data: fault });
    else if (typeof fault === 'object') sendJson(response, 200, { ...result, errors: fault.errors });
    // Without any data, the query did not get as far as an order.
    else sendJson(response, result.data === undefined ? 400 : 200, result);
  }, options.port);

  const platform: OrderingPlatform = {
    url: `${server.url}/graphql`,
    orders,
    requests,
    answer: undefined,
    stop: () => server.stop(),
  };
  return platform;
}
