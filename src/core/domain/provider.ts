import type { ZodObject, ZodType } from 'zod';
import type { KitchenReport } from './webhook.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef, StatusEvent } from './order.ts';
import type { WebhookAuth } from './webhook-auth.ts';

/** An access token as a POS grants it. */
export type Grant = {
  accessToken: string;
  /** Seconds until it expires. */
  expiresIn: number;
  /** The token that obtains the next grant. It replaces the previous refresh token. */
  refreshToken?: string | undefined;
  /**
   * Seconds for which the connection lasts without another renewal. Operators see it, and get an alert a week before it
   * ends. Omitted if it does not expire.
   */
  lastsS?: number | undefined;
};

/** Stores a POS's tokens encrypted, for all processes. One renewal runs at a time. */
export type Credentials = {
  /**
   * Returns a valid access token, obtained or renewed if necessary.
   * @param about.seed the settings that the token depends on, secrets included. A changed seed needs a new grant;
   *   locations with the same seed share their token. Without a refresh token, the client's secret is a part of it. It is
   *   not, if the vendor's refresh tokens work once: only the stored grant then has a valid one
   * @param about.proof the settings that `obtain` uses besides the seed, such as the client's secret. If they change,
   *   the grant stays, and an earlier refusal no longer counts
   * @param about.obtain a function that requests a grant from the POS, with the last refresh token if there is one. It
   *   gets a signal of its own, because other callers may wait for the same token, and an aborted request could spend
   *   the refresh token and lose the grant. It throws `NeedsOperator` only if the restaurant must authorise us again
   * @param about.rejected the access token that the POS has just refused. If it was granted within the last minute, it
   *   is returned again, because the POS then objects to something else
   * @param about.maxAgeS the age in seconds from which even a valid token is renewed. A failed renewal then throws.
   *   Omitted for orders, because a failed early renewal must not stop them
   * @throws TryAgain with `sent: false`, or NeedsOperator. Its cause is `reconnect_needed` if the refresh token is lost
   */
  accessToken(about: {
    seed: Readonly<Record<string, string>>;
    proof?: Readonly<Record<string, string>>;
    obtain: (refreshToken: string | undefined, signal: AbortSignal) => Promise<Grant>;
    rejected?: string | undefined;
    maxAgeS?: number;
  }): Promise<string>;
};

export type PosContext<Settings> = {
  settings: Settings;
  /** The present time by Postgres's clock, because the machine's clock may be wrong. */
  now: Date;
  /** Aborts when the time of the attempt is over: see `attemptWithinS`. */
  signal: AbortSignal;
  /** The store for a POS whose tokens expire. */
  credentials: Credentials;
  /**
   * The fetch for every request to the POS; `callPos` takes it. It follows no redirect and reads at most 1 MiB of an
   * answer. If the host is private and `ALLOW_PRIVATE_HOSTS` does not name it, the fetch sends nothing and throws
   * `NeedsOperator`.
   */
  fetch: typeof fetch;
  /**
   * Whether the POS or its webhooks gave the id of a ticket for this location within the last day. An answer without a
   * body has its documented meaning only then, because a gateway or a parked domain may have given it. Only
   * `createOrder` gets this function.
   */
  namedTicketLately?: () => Promise<boolean>;
};

/** The result of connecting a POS's webhook. The operator sees these sentences, so they must contain no secret. */
export type Connection = {
  done: readonly string[];
  /** Steps left to do by hand, exact and in sequence. */
  todo: readonly string[];
  /** Settings that the POS returned. They replace the location's fields of the same name; `undefined` removes one. */
  settings?: Readonly<Record<string, unknown>>;
  /** True if neither the POS nor `todo` has the webhook's URL. Then the token in that URL is revoked. */
  unused?: boolean;
};

/**
 * A POS's answer to a cancel. `cancelled`: the order is cancelled. `requested`: a webhook will report the outcome.
 * `absent`: the POS has no such order, which proves that there is no ticket.
 */
export type CancelAnswer = 'cancelled' | 'requested' | 'absent';

/** One request to the webhook's URL, as it arrived. */
export type Webhook = {
  /** Headers, names in lower case. */
  headers: Record<string, string>;
  /** The exact bytes, because signatures cover them. */
  body: Buffer;
  /** `PUBLIC_URL` and the raw request target, never decoded, because some vendors sign the URL. */
  url: string;
  /** The time of arrival, for signature tolerances. A replay has the original time. */
  receivedAt: Date;
  /** True for a replay whose signature was verified on arrival. Do not verify it again. */
  verified: boolean;
};

/** The code behind an integration, as a plain object. */
export type Provider<Settings = unknown> = {
  /** The name in the webhook's URL and on a location. */
  integration: string;
  /** The schema of one location's settings, credentials included. */
  settings: ZodType<Settings>;
  /**
   * A stricter schema for newly stored settings, if there is one. Existing locations that do not match it continue to work,
   * and the doctor names them.
   */
  newSettings?: ZodType<Settings>;
  /**
   * The settings that belong to the platform and not to a restaurant, with the hosts that get them: a part of
   * `settings`, such as `Settings.pick({ baseUrl: true, clientId: true, clientSecret: true })`. A vendor application
   * supplies all of them to the locations that refer to it. Omitted if the platform has none at this vendor.
   */
  application?: ZodObject;
  /**
   * True if the POS creates one ticket per `serviceOrderId`, however often `createOrder` is called. Then an attempt
   * whose answer was lost is repeated; when a repeat is no longer safe, `findOrder` is called. If false, `findOrder` is
   * called before any repeat. Without `findOrder` an operator decides.
   */
  deduplicates: boolean;
  /**
   * Seconds for which the POS recognises a repeat, by its vendor's documentation or a cautious estimate. After that an
   * order in doubt is not repeated: `findOrder` or a person checks. Omitted if a reference stays unique for ever.
   */
  deduplicatesForS?: number;
  /**
   * Seconds that one attempt (`createOrder`, `findOrder` or `readStatus`) may take with all its requests: at most 120,
   * by default 15. Set this if the POS documents slow answers. If the process dies meanwhile, the order waits this long
   * plus 15 s.
   */
  attemptWithinS?: number;
  /**
   * Creates a ticket at the POS, with `order.callOutCode` for the kitchen and the counter. The member sees the same
   * code.
   * @throws TryAgain, NeedsOperator or GiveUp. The POS may have taken the order after any other error, after TryAgain
   *   with `sent: true`, and after a 5xx or 408 if `deduplicates` is false (see `perhapsTaken`)
   */
  createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef>;
  /**
   * Checks an order, without a request, against the POS's limits that do not depend on settings, such as the length of
   * an id. Used while a platform is being connected. `createOrder` refuses the same order with the same message.
   * @throws GiveUp
   */
  checkOrder?(order: CanonicalOrder): void;
  /** Finds the order by our reference; undefined if the POS does not have it. Throws like `createOrder`. */
  findOrder?(serviceOrderId: string, context: PosContext<Settings>): Promise<OrderRef | undefined>;
  /**
   * Reads an order's present status at the POS. Returns the events that its webhooks should have brought, usually one.
   * Called for overdue orders, at most once a minute per location. The read must have no side effects or costs. Omitted
   * if the POS has no such read.
   * @param ref the known ids of the ticket; without `providerOrderId` only our own id is known
   * @returns `[]` if the POS has no such order, or its state has no meaning for us; undefined if it cannot be read:
   *   these settings name no URL, or the POS needs an id that is not known yet
   * @throws like `createOrder`
   */
  readStatus?(
    ref: OrderRef,
    order: CanonicalOrder,
    context: PosContext<Settings>,
  ): Promise<readonly StatusEvent[] | undefined>;
  /**
   * Cancels an order at the POS. Also called for an order in doubt, whose ticket may not exist. Omitted if the POS's
   * API cannot cancel: then a person telephones.
   * @param ref the known ids of the ticket; without `providerOrderId` only our own id is known
   * @param order the order as it was sent, with `cancelReason` and the code on its ticket
   * @returns undefined if a person must telephone: these settings allow no cancel, the POS needs an id that is not
   *   known, or it cannot cancel this kind of order
   * @throws GiveUp if the POS refuses because it is too late; TryAgain and NeedsOperator like `createOrder`
   */
  cancelOrder?(
    ref: OrderRef,
    order: CanonicalOrder & Pick<KitchenOrder, 'callOutCode'>,
    context: PosContext<Settings>,
  ): Promise<CancelAnswer | undefined>;
  /** False if `cancelOrder` cannot ask the POS with these settings. Omitted if it always can. */
  canCancel?(settings: Settings): boolean;
  /**
   * True if repeating a cancel has no further effect at the POS. Otherwise a cancel whose answer was lost is not
   * repeated: `readStatus` reads the order, or a person checks.
   */
  deduplicatesCancels?: boolean;
  /**
   * Verifies a webhook, then reads it. `[]` means that it has no event for us.
   * @throws NotAuthentic or Poison; the webhook is then stored as dropped
   */
  translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[];
  /**
   * Reads whether the kitchen takes orders now, from a verified webhook in which `translateWebhook` found no event.
   * While the kitchen is closed, orders for the location wait. Returns undefined if the webhook does not report it.
   * Omitted if no webhook of this POS reports it.
   * @throws Poison; the webhook is then stored as dropped
   */
  readKitchen?(webhook: Webhook, settings: Settings): KitchenReport | undefined;
  /** True if `createOrder` uses `order.extraMinutes`. Otherwise the order has none, and its story says nothing of them. */
  usesExtraMinutes?: boolean;
  /** True if the POS refuses an item that is not on its menu. A test order then needs the id of one that is. */
  menuOnly?: boolean;
  /** How `translateWebhook` verifies a webhook. Operators see this if a webhook could not be verified. */
  webhookAuth?: WebhookAuth;
  /**
   * The headers that `translateWebhook` reads besides `webhookAuth.header`, in lower case. They are stored in clear, so
   * none may be a secret. A replay has only the headers of `storedHeaders`, or all if the webhook was dropped.
   */
  webhookHeaders?: readonly string[];
  /**
   * Checks that the settings reach their POS, by a read without side effects or costs. It calls the POS every time, and
   * finds settings that are well-formed but wrong. Omitted if the POS has no such read.
   * @returns usually nothing, or a clause about a temporary condition that no setting can change, such as a closed
   *   till. The operator sees it, so it must contain no secret
   * @throws TryAgain if the POS cannot be reached now; NeedsOperator, which names the wrong setting
   */
  check?(context: PosContext<Settings>): Promise<string | void>;
  /**
   * True if `check` calls the interface that takes this restaurant's orders, in few requests, so that its answer proves
   * that orders arrive. Then it is also called, up to every 5 s, while the POS may not answer. Otherwise a POS is
   * unreachable after two unanswered calls.
   */
  checkProvesOrders?: boolean;
  /**
   * Registers the webhook if the POS's API allows it, and returns the steps left to do. Safe to repeat.
   * @param context.webhookUrl the URL that the POS must call, with our token
   * @param context.locations the number of our locations with this integration, including this one
   * @throws TryAgain, NeedsOperator or GiveUp
   */
  connect?(context: PosContext<Settings> & { webhookUrl: string; locations: number }): Promise<Connection>;
  /** Omitted if the vendor has no page where the restaurant's owner grants us access. */
  authorisation?: Authorisation<Settings>;
  /**
   * Uses a credential that expires if it is not used, such as a refresh token. Called once a day for each location.
   * @throws like `createOrder`
   */
  renewConnection?(context: PosContext<Settings>): Promise<unknown>;
  /**
   * Returns the seed of the grant that `renewConnection` renews, so that operators see how long it lasts. Undefined if
   * these settings need no grant.
   */
  grantSeed?(settings: Settings): Readonly<Record<string, string>> | undefined;
  /**
   * Returns the account at the POS that the settings lead to. Another account would make a second ticket of the same
   * order, so an order in doubt with one account is never sent to another automatically.
   */
  account?(settings: Settings): string;
  /** True if webhooks can only be verified with the URL that the POS calls. That needs `PUBLIC_URL`. */
  needsPublicUrl?(settings: Settings): boolean;
  /** What `certify` needs. Only for a POS that was built to follow docs/connect-your-pos.md. */
  builtForUs?: {
    /** The webhook header whose value stays the same when a webhook is sent again. */
    idHeader: string;
    /** Returns settings that sign orders with an unknown secret; undefined if orders are not signed. */
    forge(settings: Settings): Settings | undefined;
    /** Suggests how to fix a webhook that changed nothing. Undefined if the cause is unclear. */
    suggestFix(webhook: Webhook, settings: Settings): string | undefined;
  };
};

/**
 * How a restaurant's owner grants us access at the vendor's page, and how that ends. The page redirects the browser to
 * our callback with `state` and a code, or with `error`: RFC 6749, section 4.1.
 */
export type Authorisation<Settings> = {
  /** The vendor's name, which the owner reads. */
  vendor: string;
  /**
   * The vendor's own hosts, of its page and of its API. Only an integrator of all locations may send owners, and the
   * access that they grant, to another host.
   */
  hosts: readonly string[];
  /** The settings that `exchange` fills in. Without them, the location has no access. */
  grants: readonly string[];
  /**
   * Returns the URL of the vendor's page. It must contain no secret but `state`.
   * @param about.redirectUri our callback. Some vendors know it only from the registration of the application
   * @throws NeedsOperator if these settings lack what the page needs
   */
  page(settings: Settings, about: { redirectUri: string; state: string }): string;
  /**
   * Exchanges the code for access.
   * @returns settings that replace those of the same name (`undefined` removes one), and the vendor's own name of the
   *   account, which the owner confirms. Until then the access is used for nothing else
   * @throws NeedsOperator if the vendor refuses the code; TryAgain if it cannot be reached
   */
  exchange(context: PosContext<Settings>, code: string): Promise<{ settings: Partial<Settings>; account: string }>;
  /** Ends the access at the vendor. @throws NeedsOperator if the vendor refuses that; TryAgain */
  revoke(context: PosContext<Settings>): Promise<void>;
  /** Identifies the access that `revoke` ends. Locations with the same one lose it together. Undefined if none. */
  access(settings: Settings): string | undefined;
  /**
   * Reads when the restaurant withdrew this location's access, from a verified webhook in which `translateWebhook` found
   * no event. Undefined if the webhook does not report that. Omitted if no webhook of this POS reports it.
   * @throws Poison; the webhook is then stored as dropped
   */
  readRevoked?(webhook: Webhook, settings: Settings): Date | undefined;
};

/** Providers by integration. It is a `Map` because an object would find `constructor` in `/webhook/constructor/x`. */
export type Registry = ReadonlyMap<string, Provider>;
