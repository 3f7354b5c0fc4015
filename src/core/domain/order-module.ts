import type { FulfillmentType } from './lifecycle.ts';

/** How orders are read from an ordering platform. `ORDER_MODULE` names a module that exports one of these. */
export type OrderModule = QueryModule | FetchModule;

type Mapper = {
  /**
   * The headers of each request, if the platform does not take `ORDER_API_TOKEN` as a bearer token. They are kept until the
   * platform answers 401 or `UNAUTHENTICATED`. Then they are made again, and the order is fetched once more, all in 8 s.
   * @throws OrderError with `UNAUTHENTICATED` if nobody gives us a token, which holds the order, or with
   *   `INTERNAL_SERVER_ERROR` to try again. So does a `fetch` without an answer. After any other error the order is held
   */
  headers?(token: string | undefined): Record<string, string> | Promise<Record<string, string>>;
  /**
   * Says that the platform has cancelled the order. A platform may empty an order that it cancels, so nothing else of it
   * must be readable: an error of `toCanonicalOrder` then does not matter. If GraphQL answers with errors about some
   * fields, this function counts if it reads none of them.
   * @returns null if the order is not cancelled
   */
  cancelled?(data: unknown): Cancelled | null;
  /**
   * Makes an order from GraphQL's `data`, or from what `fetchOrder` returned. It is called only if a field has a value,
   * because otherwise there is no such order. If it throws, the order is held.
   * @returns null if the platform has no such order, or `skip(reason)` if the order is not for us
   */
  toCanonicalOrder(data: unknown): OrderInput | Skipped | null;
};

/** A module for a platform with GraphQL. */
export type QueryModule = Mapper & {
  /** A GraphQL document with one query. Its variable is `$id`, the order's id from the signal. */
  query: string;
  /** The query's variables, if they are not just `$id`. */
  variables?(orderId: string): Record<string, unknown>;
  /**
   * Translates an error of a platform that has its own codes. Called for each error of an answer. If it returns undefined,
   * or throws (which is logged), the error's `extensions.code` is used.
   */
  errorCode?(error: PlatformError): ErrorCode | undefined;
  fetchOrder?: undefined;
};

/** A module for a platform with any other API. */
export type FetchModule = Mapper & {
  /**
   * Fetches an order's data, in 8 s.
   * @returns null or only empty values if the platform has no such order (yet). After undefined the order is held
   * @throws OrderError if the platform says something else of this order. After any other error the order is held
   */
  fetchOrder(orderId: string, context: FetchContext): Promise<unknown>;
  query?: undefined;
  variables?: undefined;
  errorCode?: undefined;
};

export type FetchContext = {
  /**
   * Sends a request to the origin of `ORDER_API_URL`, with the token. At most 20 for one order.
   * @param target resolved against `ORDER_API_URL` like a link: `/v1/orders/7` replaces its path. Encode the order's id
   *   by `encodeURIComponent`
   * @returns an answer of 2xx, 404 or 410, or of `expect`
   * @throws an error that decides what happens to the order. Caught, it still decides, unless an order is returned
   */
  fetch: (
    target: string | URL,
    init?: {
      method?: string;
      headers?: Record<string, string>;
      body?: string;
      /** More statuses of 4xx that the module reads itself, but not 401 or 429. */
      expect?: readonly number[];
    },
  ) => Promise<FetchAnswer>;
  /** Aborted when `fetchOrder` ends or its time is over. */
  signal: AbortSignal;
};

/**
 * Its body has at most 4 MiB, and is read already. `json` throws like `fetch` if the body is not JSON: the platform
 * counts as failing.
 */
export type FetchAnswer = Pick<Response, 'status' | 'ok' | 'headers' | 'json' | 'text'>;

/** What `fetchOrder` and `headers` throw to say what the platform says: `throw new OrderError('BAD_USER_INPUT')`. */
export class OrderError extends Error {
  override readonly name = 'OrderError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode) {
    super(code);
    this.code = code;
  }

  /** Compares names, because a module's bundle may have a copy of this class. */
  static override [Symbol.hasInstance](error: unknown): error is OrderError {
    return error instanceof Error && error.name === 'OrderError';
  }
}

/** When the platform cancelled an order, in RFC 3339 with an offset, and why, fit for the restaurant. This is final. */
export type Cancelled = { cancelledAt: string; cancelReason?: Maybe<string> };

/** What `skip` returns. Code may compare the reason with the reasons of its mapper, so it is one word. */
export type Skipped = { skipped: string };

/** An entry of `errors` in a GraphQL answer: https://spec.graphql.org/October2021/#sec-Errors */
export type PlatformError = {
  message?: string;
  /** Places in the query. */
  locations?: readonly { line: number; column: number }[];
  path?: readonly (string | number)[];
  extensions?: Readonly<Record<string, unknown>>;
};

/**
 * `NOT_FOUND`: no such order. `UNAUTHENTICATED`, `FORBIDDEN`: orders are held, and an alert fires. `BAD_USER_INPUT`:
 * the id is invalid, and the order fails. After any other code the request is retried. `FORBIDDEN` in an `OrderError` is
 * about this order alone.
 */
export type ErrorCode = 'NOT_FOUND' | 'UNAUTHENTICATED' | 'FORBIDDEN' | 'BAD_USER_INPUT' | 'INTERNAL_SERVER_ERROR';

export type Maybe<Value> = Value | null | undefined;

/**
 * An order as a mapper returns it. Amounts are integers of minor units: 12.90 EUR is 1290, and 1290 JPY is 1290. Times are
 * RFC 3339 with an offset: `2027-01-31T18:00:00+01:00`. Ids are texts of 1 to 255 characters, not blank. A field with `?`
 * may be null or missing. If any other field is missing or wrong, the order is held.
 */
export type OrderInput = {
  /** The order's id, exactly as in the signal. */
  serviceOrderId: string;
  /** Your id of the restaurant, as in `expediter location put --location`. */
  locationId: string;
  member: {
    /** For a guest use a separate id for each order, because `member erase` erases all orders of an id. */
    id: string;
    /** One line, for the ticket. */
    name: string;
    /** Left out of the order if it is unusable. */
    email?: Maybe<string>;
    /** E.164, or as typed in the country of the destination or the location. Left out of the order if it is unusable. */
    phone?: Maybe<string>;
  };
  fulfillment: {
    /** For any other type, such as an order at a table, return `skip(reason)`. */
    type: FulfillmentType;
    /** Required for a delivery. Wrong parts except `line1` are left out of the order. */
    destination?: Maybe<{
      /** Street and house number. */
      line1: string;
      line2?: Maybe<string>;
      city?: Maybe<string>;
      postalCode?: Maybe<string>;
      region?: Maybe<string>;
      /** ISO 3166-1 alpha-2, such as DE. */
      country?: Maybe<string>;
      /** Degrees. */
      latitude?: Maybe<number>;
      longitude?: Maybe<number>;
      /** For the driver. */
      instructions?: Maybe<string>;
    }>;
    /** When the member wants it. Missing means as soon as possible. */
    requestedAt?: Maybe<string>;
  };
  /** At least one. */
  items: readonly {
    /** The POS's id of the item, or an id that the location's settings map to it. */
    serviceItemId: string;
    name: string;
    /** 1 to 9999. */
    quantity: number;
    /** For one, before discounts, without its modifiers. With the tax if `subtotal` has it. */
    unitPrice?: Maybe<number>;
    /** For the kitchen. */
    notes?: Maybe<string>;
    /** True if the age of the person who takes it must be checked. */
    ageRestricted?: Maybe<boolean>;
    modifiers?: Maybe<readonly ModifierInput[]>;
  }[];
  /** The order is paid. Amounts are not negative. */
  money: {
    /** All items, before discounts. */
    subtotal: number;
    /** At most the subtotal. By default the sum of `discounts`. A gift card is a payment, not a discount. */
    discount?: Maybe<number>;
    /** By default the sum of `taxes`. Required without them. */
    tax?: Maybe<number>;
    tip: number;
    /** By default the sum of `fees`. Required without them. */
    fee?: Maybe<number>;
    /** What the member has paid. */
    total: number;
    /** ISO 4217, such as EUR. */
    currency: string;
    /** Whether the subtotal and all prices include the tax. If it is missing, the sums tell, if they can. */
    pricesIncludeTax?: Maybe<boolean>;
  };
  /** The parts of `money.discount`, for the ticket. They add up to it. */
  discounts?: Maybe<readonly { /** By default "Discount". */ name?: Maybe<string>; amount: number }[]>;
  /** The parts of `money.fee`, such as a bag, service, delivery, a minimum order. They add up to it. */
  fees?: Maybe<readonly { /** By default "Fee". */ name?: Maybe<string>; amount: number }[]>;
  /** The parts of `money.tax`. They add up to it. */
  taxes?: Maybe<
    readonly {
      /** By default "Tax". */
      name?: Maybe<string>;
      amount: number;
      /** Percent, such as 19 or 7.25. */
      rate?: Maybe<number>;
    }[]
  >;
  /** For the kitchen, about the whole order. */
  notes?: Maybe<string>;
  placedAt: string;
  /** Set if the order was cancelled on your platform. It is then withdrawn, or cancelled at its POS. This is final. */
  cancelledAt?: Maybe<string>;
  /** Why, fit for the restaurant. */
  cancelReason?: Maybe<string>;
};

type ModifierInput = {
  serviceModifierId: string;
  name: string;
  /** For one unit of its parent, an item or a modifier. 1 to 9999. */
  quantity: number;
  /** For one, without its own modifiers. */
  unitPrice?: Maybe<number>;
  /** At most five levels. */
  modifiers?: Maybe<readonly ModifierInput[]>;
};
