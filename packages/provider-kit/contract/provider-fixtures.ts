import type { FulfillmentType, Status } from '../../../src/core/domain/lifecycle.ts';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import type { CancelAnswer } from '../../../src/core/domain/provider.ts';
import type { ReasonCode } from '../../../src/core/domain/reason-code.ts';
import type { Kitchen, StartSimulator } from '../../../world/pos/simulator.ts';

/** Fields in which a ticket is compared with its order. */
export type TicketField =
  | 'itemNames'
  | 'prices'
  | 'nesting'
  | 'name'
  | 'phone'
  | 'email'
  | 'address'
  | 'wantedAt'
  | 'tip'
  | 'fee'
  | 'discount'
  | 'total';

export type Estimate = 'estimatedReadyAt' | 'estimatedDeliveryAt';

/** A documented way in which the POS rejects an order, and its meaning. */
export type Rejection = {
  /** The answer to the order, or the native status of a webhook. */
  by: { status: number; body: unknown } | string;
  reasonCode: ReasonCode;
  /** Our ids of the sample's items that the rejection names. */
  itemIds?: readonly string[];
};

export type ProviderFixtures = {
  /** Starts the POS, which enforces its vendor's documentation. Its settings map `sampleOrder`'s items if necessary. */
  start: StartSimulator;
  /** Invalid values of each field of the settings; `undefined` means left out. */
  wrongSettings: Readonly<Record<string, readonly unknown[]>>;
  /** Fields that no error and no log may show. */
  secretSettings: readonly string[];
  /**
   * Every documented native status and its meaning; null for none. Leave out a fulfillment that it is never reported
   * for.
   */
  statuses: Readonly<Record<string, Status | null | Readonly<Partial<Record<FulfillmentType, Status | null>>>>>;
  /** The documented refusal of an order, with these words in every free text of the POS. */
  refusal: (words: string) => { status: number; body: unknown };
  /** Fields that the vendor's format lacks. All others must be on the ticket. */
  lacks?: readonly TicketField[];
  /** The order's id on the simulator's tickets, if the POS never gets our whole id. */
  reference?: (serviceOrderId: string) => string;
  /** The amount that the POS gets as paid, if it is not the order's total. */
  paid?: (order: CanonicalOrder) => number | undefined;
  /** The events of `readStatus` for a native status, if they differ from the webhook's: status and native status. */
  reads?: Readonly<Record<string, readonly (readonly [Status, string])[]>>;
  /** Fields that `check` proves: with another POS's value in one of them, it fails and names that field. */
  provenSettings?: readonly string[];
  /**
   * Secrets that identify the account because nothing else does: a connection's token. All other secrets may be
   * replaced without a new account or limit.
   */
  identity?: readonly string[];
  /** Fields of the token request that may change without losing a stored refresh token. */
  unseeded?: readonly string[];
  /** Currencies whose smallest amounts the vendor's format cannot hold: such an order fails, and is never rounded. */
  unwritable?: readonly string[];
  /** Required with `cancelOrder`: its answer for a new order, and a native status from which the POS refuses. */
  cancels?: { answer: CancelAnswer; tooLate?: string };
  /** Required with `readKitchen`: the states of a kitchen that the POS reports. */
  kitchen?: readonly Kitchen['state'][];
  /** All documented ways to reject an order, by names for the claims. Without them no `reasonCode` is tested. */
  rejections?: Readonly<Record<string, Rejection>>;
  /**
   * A native status whose webhook has the simulator's `estimate`, and the estimates it gives. Without it: the POS has
   * none. `untimed`: that webhook has no time of its own, so its arrival counts.
   */
  estimates?: { native: string; pickup?: readonly Estimate[]; delivery?: readonly Estimate[]; untimed?: true };
};
