import type { z } from 'zod';
import type { FulfillmentType } from './lifecycle.ts';
import type { CanonicalOrder } from './order.ts';

/**
 * How orders are read from an ordering platform: what is asked, and what is made of the answer. `ORDER_MODULE` names a
 * module that exports these.
 */
export type OrderModule = {
  /** A GraphQL document with one query. Its variable is `$id`, the order's id as the signal has it. */
  query: string;
  /** The variables of the query, where it has others than `$id`. */
  variables?(orderId: string): Record<string, unknown>;
  /** The headers of the request, where the platform wants something else than `ORDER_API_TOKEN` as a bearer token. */
  headers?(token: string | undefined): Record<string, string>;
  /**
   * The code that an error of the platform is judged by, where the platform has codes of its own. Undefined leaves its
   * `extensions.code`. It is asked about each error of an answer; what it throws is logged, and leaves the code as well.
   */
  errorCode?(error: PlatformError): ErrorCode | undefined;
  /**
   * Makes an order of GraphQL's `data`. Not called where no field of it has a value: then there is no such order. What it
   * throws holds the order.
   * @returns null where the platform has no such order
   */
  toCanonicalOrder(data: unknown): OrderInput | null;
};

/** An entry of `errors` in a GraphQL answer: https://spec.graphql.org/October2021/#sec-Errors */
export type PlatformError = {
  message?: string;
  path?: readonly (string | number)[];
  extensions?: Readonly<Record<string, unknown>>;
};

/**
 * What an error means: no such order; the platform refuses us, which holds orders and alerts; no such id can be, which
 * fails the order; and any other, after which it is asked again.
 */
export type ErrorCode = 'NOT_FOUND' | 'UNAUTHENTICATED' | 'FORBIDDEN' | 'BAD_USER_INPUT' | 'INTERNAL_SERVER_ERROR';

/** An order as a mapper returns it. What is optional may be null or undefined. */
export type OrderInput = Loose<Omit<Canonical, 'fulfillment'>> & {
  fulfillment: { type: FulfillmentType; destination?: Destination | null; requestedAt?: string | null };
};

type Canonical = z.input<typeof CanonicalOrder>;
type Destination = Loose<Extract<Canonical['fulfillment'], { type: 'delivery' }>['destination']>;

type Loose<Value> = Value extends readonly (infer Each)[]
  ? readonly Loose<Each>[]
  : Value extends object
    ? { [Key in keyof Value]: undefined extends Value[Key] ? Loose<Value[Key]> | null : Loose<Value[Key]> }
    : Value;
