import type { ZodType } from 'zod';
import type { Busy } from './webhook.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef, StatusEvent } from './order.ts';
import type { WebhookAuth } from './webhook-auth.ts';

/** An access token as a POS grants it. */
export type Grant = {
  accessToken: string;
  /** Seconds until it expires. */
  expiresIn: number;
  /** The token for obtaining the next one. It replaces the one before. */
  refreshToken?: string | undefined;
  /**
   * Seconds for which the connection lasts without another renewal. Operators see it, and are told a week before it ends.
   * Omitted if it does not end by itself.
   */
  lastsS?: number | undefined;
};

/** Stores a POS's tokens: encrypted, for all processes, one renewal at a time. */
export type Credentials = {
  /**
   * Returns a valid access token, obtained or renewed if necessary.
   * @param about.seed the settings that the token depends on, secrets included: other settings start afresh, and
   *   locations with the same ones share their token
   * @param about.obtain asks the POS, with the last grant's refresh token if there is one, under a signal of its own:
   *   others may wait for the same token, and a spent refresh token must not lose its grant. It throws `NeedsOperator`
   *   only if nothing but a new authorisation can help
   * @param about.rejected the access token that the POS has just refused. One granted within the last minute is
   *   returned again: then the POS objects to something else
   * @param about.maxAgeS seconds since its grant after which even a valid token is renewed, or this throws. Orders leave
   *   it out: a renewal that fails before its time must not stop them
   * @throws TryAgain `sent: false`, or NeedsOperator, with the cause `reconnect_needed` if the refresh token is lost
   */
  accessToken(about: {
    seed: Readonly<Record<string, string>>;
    obtain: (refreshToken: string | undefined, signal: AbortSignal) => Promise<Grant>;
    rejected?: string | undefined;
    maxAgeS?: number;
  }): Promise<string>;
};

/** The context of a call to the POS. */
export type PosContext<Settings> = {
  settings: Settings;
  /** The present time. The machine's own clock may be wrong. */
  now: Date;
  /** Aborts when the attempt's time is up: see `attemptWithinS`. */
  signal: AbortSignal;
  /** For a POS whose tokens expire. */
  credentials: Credentials;
  /**
   * The fetch for every request to the POS; `callPos` takes it. It follows no redirect, reads 1 MiB of an answer at most,
   * and throws `NeedsOperator` unsent where the settings lead to a private host that `ALLOW_PRIVATE_HOSTS` does not name.
   */
  fetch: typeof fetch;
};

/** The result of connecting a POS's webhook. Sentences for the operator, without secrets. */
export type Connection = {
  done: readonly string[];
  /** Steps left to do by hand, exact and in order. */
  todo: readonly string[];
  /** Settings that the POS returned. They replace the location's fields of the same name; `undefined` removes one. */
  settings?: Readonly<Record<string, unknown>>;
  /** True if neither the POS nor `todo` has the webhook's URL. Its token is revoked. */
  unused?: boolean;
};

/**
 * What a POS answers to a cancel: it is cancelled; it will say in a webhook whether it is; or it has no such order, which
 * proves that there is no ticket.
 */
export type CancelAnswer = 'cancelled' | 'requested' | 'absent';

/** One POST as it arrived. */
export type Webhook = {
  /** Headers, names in lower case. */
  headers: Record<string, string>;
  /** The exact bytes: signatures cover them. */
  body: Buffer;
  /** `PUBLIC_URL` and the raw request target, never decoded: some vendors sign the URL. */
  url: string;
  /** The time of arrival, for signature tolerances. A replay uses the original one. */
  receivedAt: Date;
  /** True for a replay whose signature was verified when it arrived. Do not verify it again. */
  verified: boolean;
};

/** The code behind an integration, as a plain object. */
export type Provider<Settings = unknown> = {
  /** The name in the webhook's URL and on a location. */
  integration: string;
  /** The schema of one location's settings, credentials included. */
  settings: ZodType<Settings>;
  /**
   * The same for settings that are put now, if more is demanded of them than of those that were put before. Locations
   * whose settings it would refuse go on as they are, and the doctor names them.
   */
  newSettings?: ZodType<Settings>;
  /**
   * True if the POS keeps one ticket per `serviceOrderId`, however often `createOrder` is called. Then an attempt whose
   * answer was lost is repeated, and `findOrder` is asked when it may not be any more. Otherwise `findOrder` is asked
   * first. Without it an operator decides.
   */
  deduplicates: boolean;
  /**
   * Seconds for which the POS recognises a repeat, by its vendor's documentation or a cautious guess. After that nobody
   * repeats an order in doubt: `findOrder` or a person looks. Omitted if a reference stays unique for ever.
   */
  deduplicatesForS?: number;
  /**
   * Seconds that one attempt, a `createOrder`, `findOrder` or `readStatus`, may take with all its requests; 120 at the
   * most, 15 if omitted. For a POS that documents slow answers. If the process dies in the midst of an order, that order
   * waits for so long and 15 s.
   */
  attemptWithinS?: number;
  /**
   * Creates a ticket at the POS, with `order.callOutCode` where the kitchen and the counter see it: the member is told it.
   * @throws TryAgain, NeedsOperator or GiveUp; anything else counts as TryAgain with the order perhaps taken, and so does
   *   any error of 5xx or 408 where `deduplicates` is false (see `perhapsTaken`)
   */
  createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef>;
  /**
   * Checks an order by what the POS takes whatever the settings, such as the length of an id, without a request. An
   * engineer sees it while a platform is connected. `createOrder` refuses the same order in the same words.
   * @throws GiveUp
   */
  checkOrder?(order: CanonicalOrder): void;
  /** Finds the order by our reference; undefined if the POS has none. Throws as `createOrder` does. */
  findOrder?(serviceOrderId: string, context: PosContext<Settings>): Promise<OrderRef | undefined>;
  /**
   * Asks the POS what it says of an order now: the events that its webhooks would have brought by now, mostly one. It is
   * called for orders that are quieter than they should be, at most once a minute and location. A read without side
   * effects or costs. Omitted if the POS has no such read.
   * @param ref what is known of its ticket: without `providerOrderId`, only our own id is
   * @returns `[]` if the POS has no such order, or its state is none of an order's life; undefined if nobody can be
   *   asked: these settings name no URL, or the POS wants an id that is not known yet
   * @throws as `createOrder` does
   */
  readStatus?(
    ref: OrderRef,
    order: CanonicalOrder,
    context: PosContext<Settings>,
  ): Promise<readonly StatusEvent[] | undefined>;
  /**
   * Cancels an order at the POS. It is also called for an order in doubt, whose ticket may not be there. Omitted if the
   * POS's API cannot cancel: then a person telephones.
   * @param ref what is known of its ticket: without `providerOrderId`, only our own id is
   * @param order as it was sent, with `cancelReason` and the code that is on its ticket
   * @returns undefined if a person has to telephone: these settings name no way, the POS wants an id that is not known, or
   *   cancels no order of this kind
   * @throws GiveUp if the POS refuses since it is too late; TryAgain and NeedsOperator as `createOrder` does
   */
  cancelOrder?(
    ref: OrderRef,
    order: CanonicalOrder & Pick<KitchenOrder, 'callOutCode'>,
    context: PosContext<Settings>,
  ): Promise<CancelAnswer | undefined>;
  /**
   * True if the POS takes the same cancel twice as one. Otherwise one whose answer was lost is not repeated: the order is
   * read again where `readStatus` can, or a person looks.
   */
  deduplicatesCancels?: boolean;
  /**
   * Verifies a webhook, then reads it. `[]` means that nothing in it is for us.
   * @throws NotAuthentic or Poison: the webhook is dropped and stored
   */
  translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[];
  /**
   * Reads a webhook that `translateWebhook` has verified and found no event in: whether the kitchen takes orders now. While
   * it does not, orders for the location wait. Undefined means that the webhook does not say. Omitted if none does.
   * @throws Poison: the webhook is dropped and stored
   */
  readBusy?(webhook: Webhook, settings: Settings): Busy | undefined;
  /** What `translateWebhook` verifies. Operators see it if a webhook could not be verified. */
  webhookAuth?: WebhookAuth;
  /**
   * The headers beside `webhookAuth.header` that `translateWebhook` reads, in lower case. They are stored in clear, so
   * none is a secret. Of the others a replay has only those of a webhook that was dropped (see `storedHeaders`).
   */
  webhookHeaders?: readonly string[];
  /**
   * Checks that the settings reach their POS, by a read without side effects or costs. It asks the POS every time, and
   * examines the answer for settings that are well-formed and wrong. Omitted if the POS has no such read.
   * @returns what the POS says of this moment and no setting changes, such as a till that is closed: a clause for the
   *   operator, without secrets. Mostly nothing
   * @throws TryAgain if the POS cannot be reached now; NeedsOperator, which names the wrong setting
   */
  check?(context: PosContext<Settings>): Promise<string | void>;
  /**
   * Registers the webhook if the POS's API allows it, and returns what is left to do. Safe to repeat.
   * @param context.webhookUrl with its token
   * @param context.locations the number of our locations with this integration, including this one
   * @throws TryAgain, NeedsOperator or GiveUp
   */
  connect?(context: PosContext<Settings> & { webhookUrl: string; locations: number }): Promise<Connection>;
  /**
   * Uses what would expire without use, such as a refresh token. Called once a day for each location.
   * @throws as `createOrder` does
   */
  renewConnection?(context: PosContext<Settings>): Promise<unknown>;
  /**
   * Returns the seed of the grant that `renewConnection` keeps, so that operators see how long it lasts. Undefined if
   * these settings need none.
   */
  grantSeed?(settings: Settings): Readonly<Record<string, string>> | undefined;
  /**
   * Returns the account at the POS that the settings lead to. In another account, the same order makes another ticket,
   * so an order in doubt with one account is never sent to another automatically.
   */
  account?(settings: Settings): string;
  /** True if its webhooks can only be verified with the URL that the POS calls, hence with `PUBLIC_URL`. */
  needsPublicUrl?(settings: Settings): boolean;
  /** Only for a POS that is built by docs/connect-your-pos.md: what `certify` asks and knows of it besides. */
  builtForUs?: {
    /** The header of a webhook that is the same whenever it is sent again. */
    idHeader: string;
    /** Returns settings that sign orders by a secret that nobody has; undefined if nothing signs them. */
    forge(settings: Settings): Settings | undefined;
    /** Suggests how to fix a webhook that changed nothing. Undefined if the cause is unclear. */
    suggestFix(webhook: Webhook, settings: Settings): string | undefined;
  };
};

/** Providers by integration. A `Map`: an object would find `constructor` in `/webhook/constructor/x`. */
export type Registry = ReadonlyMap<string, Provider>;
