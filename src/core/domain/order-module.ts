import type { z } from 'zod';
import type { FulfillmentType } from './lifecycle.ts';
import type { CanonicalOrder } from './order.ts';

/** How orders are read from an ordering platform. `ORDER_MODULE` names a module that exports these. */
export type OrderModule = {
  /** A GraphQL document with one query. Its variable is `$id`, the order's id from the signal. */
  query: string;
  /** The query's variables, if they are not just `$id`. */
  variables?(orderId: string): Record<string, unknown>;
  /** The request's headers, if the platform does not take `ORDER_API_TOKEN` as a bearer token. */
  headers?(token: string | undefined): Record<string, string>;
  /**
   * Translates an error of a platform that has its own codes. Called for each error of an answer. If it returns undefined,
   * or throws (which is logged), the error's `extensions.code` is used.
   */
  errorCode?(error: PlatformError): ErrorCode | undefined;
  /**
   * Makes an order from GraphQL's `data`. It is called only if a field of `data` has a value, because otherwise there
   * is no such order. If it throws, the order is held.
   * @returns null if the platform has no such order
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
 * `NOT_FOUND`: no such order. `UNAUTHENTICATED`, `FORBIDDEN`: orders are held, and an alert fires. `BAD_USER_INPUT`:
 * the id is invalid, and the order fails. After any other code the request is retried.
 */
export type ErrorCode = 'NOT_FOUND' | 'UNAUTHENTICATED' | 'FORBIDDEN' | 'BAD_USER_INPUT' | 'INTERNAL_SERVER_ERROR';

/** An order as a mapper returns it. An optional field may be null or undefined. */
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
