import type { ZodType } from 'zod';
import type { CanonicalOrder, OrderRef, StatusEvent } from './order.ts';

/** What a call to the POS gets beside the order. */
export type PosContext<Settings> = {
  settings: Settings;
  /** The time, for whatever carries one: a machine's own clock may be off. */
  now: Date;
  /** Aborts when the attempt's time is up. */
  signal: AbortSignal;
};

/** One POST as it arrived. */
export type Webhook = {
  /** Names in lower case. */
  headers: Record<string, string>;
  /** The exact bytes: signatures cover them. */
  body: Buffer;
  /** `PUBLIC_URL` and the raw request target, never decoded: some vendors sign the URL. */
  url: string;
  /** The clock for signature tolerances, so that a replay judges a delivery by when it came. */
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
   * @throws TryAgain, OursToFix or GiveUp; anything else counts as TryAgain with the order perhaps taken
   */
  createOrder(order: CanonicalOrder, context: PosContext<Settings>): Promise<OrderRef>;
  /** Looks the order up by our reference; undefined when the POS has none. Throws as `createOrder` does. */
  findOrder?(serviceOrderId: string, context: PosContext<Settings>): Promise<OrderRef | undefined>;
  /**
   * Verifies, then reads. `[]` means that nothing in it is for us.
   * @throws NotAuthentic or Poison: the delivery is dropped and kept
   */
  translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[];
};

/** A `Map`, since an object would find `constructor` in `/webhook/constructor/x`. */
export type Registry = ReadonlyMap<string, Provider>;
