import type { FulfillmentType, Status } from '../../../src/core/domain/lifecycle.ts';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import type { CancelAnswer } from '../../../src/core/domain/provider.ts';
import type { ReasonCode } from '../../../src/core/domain/reason-code.ts';
import type { StartSimulator } from '../../simulators/simulator.ts';

/** What a ticket is compared with the order by. */
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

/** A documented way in which the POS says that it does not make an order, and what it means. */
export type Rejection = {
  /** The answer to the order, or the native status of a webhook. */
  by: { status: number; body: unknown } | string;
  reasonCode: ReasonCode;
  /** Our ids of the sample's items that it names. */
  itemIds?: readonly string[];
};

export type ProviderFixtures = {
  /** The POS, held to its vendor's documentation. Its settings map the items of `sampleOrder` where that is needed. */
  start: StartSimulator;
  /** Fields of the settings and what none of them may be, one value at a time; `undefined` stands for left out. */
  wrongSettings: Readonly<Record<string, readonly unknown[]>>;
  /** The fields that no error and no log may show. */
  secretSettings: readonly string[];
  /**
   * Every native status that is documented and what it says about an order; null: nothing. A fulfillment that the POS
   * never reports it for is left out.
   */
  statuses: Readonly<Record<string, Status | null | Readonly<Partial<Record<FulfillmentType, Status | null>>>>>;
  /** The refusal of an order as the vendor documents it, with these words wherever the POS writes as it likes. */
  refusal: (words: string) => { status: number; body: unknown };
  /** What the vendor's format has no field for. All else of an order has to be on the ticket. */
  lacks?: readonly TicketField[];
  /** What the simulator's tickets call an order, where the POS never holds the whole of our id. */
  reference?: (serviceOrderId: string) => string;
  /** What the POS is told is paid, where that is not the order's total. */
  paid?: (order: CanonicalOrder) => number | undefined;
  /**
   * What a read says of a native status, where that is not what its webhook says: status and native status of its events.
   */
  reads?: Readonly<Record<string, readonly (readonly [Status, string])[]>>;
  /** The fields that `check` proves: with another POS's value in one of them it fails, and names it. */
  provenSettings?: readonly string[];
  /**
   * Secrets that are the account themselves, where nothing else tells it apart: a connection's token. All other secrets
   * may be replaced, and neither account nor limit begins afresh.
   */
  identity?: readonly string[];
  /** Fields that may change without losing a refresh token, which is stored nowhere else, though a token is asked for with them. */
  unseeded?: readonly string[];
  /** Currencies whose smallest amounts the vendor's format cannot hold: such an order is given up, never rounded. */
  unwritable?: readonly string[];
  /** Where there is `cancelOrder`: what it says of a new order, and a native status from which the POS refuses. */
  cancels?: { answer: CancelAnswer; tooLate?: string };
  /** All documented ways to reject an order, by names for the claims. Without them none has a `reasonCode`. */
  rejections?: Readonly<Record<string, Rejection>>;
  /**
   * A native status whose webhook carries the simulator's `estimate`, and what it is for. Without: the POS has none.
   * `untimed`: the vendor gives that webhook no time of its own, so that it counts by when it came.
   */
  estimates?: { native: string; pickup?: readonly Estimate[]; delivery?: readonly Estimate[]; untimed?: true };
};
