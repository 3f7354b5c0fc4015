import type { ZodType } from 'zod';
import type { CanonicalOrder, OrderRef, StatusEvent } from './order.ts';
import type { WebhookAuth } from './webhook-auth.ts';

/** An access token as a POS grants it. */
export type Grant = {
  accessToken: string;
  /** Seconds. */
  expiresIn: number;
  /** Where the next token is asked for with one; it takes the place of the one before. */
  refreshToken?: string | undefined;
};

/** Keeps what a POS grants for a time: encrypted, for all processes, one renewal at a time. */
export type Credentials = {
  /**
   * An access token that is still good, obtained or renewed where there is none.
   * @param about.seed the settings that the token stems from, secrets included: other settings begin anew, and locations
   *   with the same ones share their token
   * @param about.obtain asks the POS, with the refresh token of the last grant if there is one, under a signal of its
   *   own: others may wait for the same token, and a refresh token that was spent must be followed by its grant. It
   *   throws `NeedsOperator` only when nothing but a new authorisation can help
   * @param about.rejected the access token that the POS has just refused. One that was granted within the last minute is
   *   given once more: then it is not the token that the POS objects to
   * @throws TryAgain `sent: false`, or NeedsOperator, with the cause `reconnect_needed` when the refresh token is lost
   */
  accessToken(about: {
    seed: Readonly<Record<string, string>>;
    obtain: (refreshToken: string | undefined, signal: AbortSignal) => Promise<Grant>;
    rejected?: string | undefined;
  }): Promise<string>;
};

/** What a call to the POS gets beside the order. */
export type PosContext<Settings> = {
  settings: Settings;
  /** The time, for whatever carries one: a machine's own clock may be off. */
  now: Date;
  /** Aborts when the attempt's time is up. */
  signal: AbortSignal;
  /** For a POS whose tokens expire. */
  credentials: Credentials;
};

/** What it took to make the POS call our webhook; sentences for the operator, without secrets. */
export type Connection = {
  done: readonly string[];
  /** What is left to do by hand, exactly, in order. */
  todo: readonly string[];
  /** What the POS gave in return: kept in the location's settings, in place of fields of the same name. */
  settings?: Readonly<Record<string, unknown>>;
};

/** One POST as it arrived. */
export type Webhook = {
  /** Names in lower case. */
  headers: Record<string, string>;
  /** The exact bytes: signatures cover them. */
  body: Buffer;
  /** `PUBLIC_URL` and the raw request target, never decoded: some vendors sign the URL. */
  url: string;
  /** The clock for signature tolerances, so that a replay judges a webhook by when it came. */
  receivedAt: Date;
  /** The signature was verified when it came (a replay); do not ask for it again. */
  verified: boolean;
};

/** The code behind an integration. A plain object: a new POS is one folder and one line in the registry. */
export type Provider<Settings = unknown> = {
  /** The name in the webhook's URL and on a location. */
  integration: string;
  /** Settings of one location, credentials included. */
  settings: ZodType<Settings>;
  /**
   * Does the POS keep one ticket per `serviceOrderId` however often `createOrder` is called? Then an attempt whose
   * answer was lost is simply repeated. Otherwise `findOrder` is asked first, and without it an operator decides.
   */
  deduplicates: boolean;
  /**
   * Puts a ticket at the POS.
   * @throws TryAgain, NeedsOperator or GiveUp; anything else counts as TryAgain with the order perhaps taken
   */
  createOrder(order: CanonicalOrder, context: PosContext<Settings>): Promise<OrderRef>;
  /** Looks the order up by our reference; undefined when the POS has none. Throws as `createOrder` does. */
  findOrder?(serviceOrderId: string, context: PosContext<Settings>): Promise<OrderRef | undefined>;
  /**
   * Verifies, then reads. `[]` means that nothing in it is for us.
   * @throws NotAuthentic or Poison: the webhook is dropped and kept
   */
  translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[];
  /** What `translateWebhook` verifies with: an operator is told of it when a webhook did not verify. */
  webhookAuth?: WebhookAuth;
  /**
   * Proves that the settings reach their POS: a read that changes nothing there and costs nobody anything. It asks the
   * POS itself every time, and looks for what is right in form and wrong in substance where the answer shows it. Left
   * out where the POS has no such read.
   * @throws TryAgain where the POS cannot be reached now; NeedsOperator, which names the setting that is wrong
   */
  check?(context: PosContext<Settings>): Promise<void>;
  /**
   * Registers the webhook where the POS's API allows it, and says what is left to do. Safe to repeat.
   * @param context.webhookUrl with its token
   * @param context.locations how many of our locations this integration serves, this one included
   * @throws TryAgain, NeedsOperator or GiveUp
   */
  connect?(context: PosContext<Settings> & { webhookUrl: string; locations: number }): Promise<Connection>;
  /**
   * Uses what would expire unused, such as a refresh token; called once a day for each location.
   * @throws as `createOrder` does
   */
  renewConnection?(context: PosContext<Settings>): Promise<unknown>;
  /**
   * Whose POS the settings lead to, and under which references: where it differs, the same order sent again may make
   * another ticket. So an order that is in doubt with one account is never sent again with another by itself.
   */
  account?(settings: Settings): string;
  /** Can its webhooks only be verified with the URL that the POS calls, hence with `PUBLIC_URL`? */
  needsPublicUrl?(settings: Settings): boolean;
};

/** A `Map`, since an object would find `constructor` in `/webhook/constructor/x`. */
export type Registry = ReadonlyMap<string, Provider>;
