import type { FulfillmentType } from '../../src/core/domain/lifecycle.ts';

export type SimulatorOptions = {
  /** The location's currency, by default EUR. Some POS systems never name it. */
  currency?: string;
  /** Divides the vendor's waits before repeats: 600 makes 0.1 s of a minute. */
  hurry?: number;
  port?: number;
};

/**
 * A ticket that the simulator parsed from the vendor's format, without the provider's code. A field is undefined if it
 * was not sent, or if the format lacks it.
 */
export type Ticket = {
  readonly providerOrderId: string;
  /** Our reference, as the POS got it. */
  readonly serviceOrderId: string;
  /** Identifies a repeat at the POS, as sent: an idempotency key, or our reference. */
  readonly key: string;
  readonly fulfillment: FulfillmentType;
  /** The code that staff call out, if the format has a field for it. */
  readonly callOut?: string | undefined;
  readonly lines: readonly TicketLine[];
  /** The amount that the POS got as paid, tip included, in minor units. */
  readonly paid: number | undefined;
  /** In minor units. */
  readonly tip: number | undefined;
  readonly fee: number | undefined;
  /** The sum of all discounts, in minor units. Undefined if the format has no field for it. */
  readonly discount?: number | undefined;
  /** The till's own total, comparable with `paid`. Undefined if the till computes none. */
  readonly total?: number | undefined;
  /** The member. A telephone number is E.164. */
  readonly guest: {
    readonly name: string | undefined;
    readonly phone: string | undefined;
    readonly email: string | undefined;
  };
  /** All fields of a delivery's address, joined by blanks. */
  readonly address: string | undefined;
  /** The requested time with an offset. Undefined: as soon as possible. */
  readonly wantedAt: string | undefined;
  /** All notes about the whole order, and those for the driver. */
  readonly note: string;
  /** The number of requests for it. More than one means a recognised repeat. */
  requests: number;
  /** The last reported status. */
  status: string | undefined;
  /** True once the POS cancelled it for us, or accepted to ask a person first. */
  cancelled?: true | undefined;
};

export type TicketLine = {
  /** The POS's own reference of the item. */
  readonly reference: string;
  /** Only if the vendor's format has one, or the simulator's menu. */
  readonly name: string | undefined;
  readonly quantity: number;
  /** Price of one piece, in minor units, without modifiers. */
  readonly price: number | undefined;
  readonly note: string | undefined;
  /** Only if the vendor's format has a field for it. */
  readonly ageRestricted?: boolean;
  readonly modifiers: readonly TicketModifier[];
};

export type TicketModifier = {
  readonly reference: string;
  /** Only if the vendor's format has one, or the simulator's menu. */
  readonly name?: string | undefined;
  /** Quantity per piece of the item or modifier above it. */
  readonly quantity: number;
  /** Price of one piece, in minor units, without its modifiers. */
  readonly price: number | undefined;
  /** Only if the vendor's format can nest. */
  readonly modifiers?: readonly TicketModifier[];
};

/** `hang`: no ticket, no answer. `drop-answer`: a ticket and a cut connection. A status: no ticket, this answer. */
export type Fault = 'hang' | 'drop-answer' | { status: number; headers?: Record<string, string>; body?: unknown };

/** A webhook request in the vendor's form. Header names are in lower case. */
export type SignedWebhook = { headers: Record<string, string>; body: Buffer };

/** What a POS says about its kitchen. A POS without such a field leaves out `until` (RFC 3339) and `extraMinutes`. */
export type Kitchen = { state: 'open' | 'busy' | 'closed'; until?: string; extraMinutes?: number };

/** A POS that enforces its vendor's documentation, for tests and the demo. */
export type Simulator = {
  readonly integration: string;
  readonly url: string;
  /** Settings of a location of this POS, with their own secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The menu, for a POS with its own ids. Adds missing entries by our id, also to the maps of `settings`. */
  readonly menu?: {
    /** @param price in minor units */
    sell(id: string, name: string, price: number): void;
    offer(id: string, name: string, price: number): void;
  };
  /** Oldest first. */
  readonly tickets: readonly Ticket[];
  /** The number of requests for a ticket, whatever their result. */
  readonly requests: number;
  /** Why malformed requests were refused, oldest first, for a test to print. */
  readonly refusals: readonly string[];
  /** Returns a fault for a request for a ticket, before any other check. The reference is ours. */
  behave: ((request: { serviceOrderId: string }) => Fault | undefined) | undefined;
  /** Called with each new ticket. */
  onTicket: ((ticket: Ticket) => void) | undefined;
  /** An order's native statuses from its first report to its good end, in this POS's words. */
  lifeOf(fulfillment: FulfillmentType): readonly string[];
  /** Changes a ticket's status without a webhook. Required, like `reads`, if the provider has `readStatus`. */
  become?(ticket: Ticket, nativeStatus: string): void;
  /** The number of requests for an order's status. */
  readonly reads?: number;
  /** Returns a fault for a status request, before any other check. */
  misread?: (() => Fault | undefined) | undefined;
  /** The number of cancel requests. Required, like `miscancel`, if the provider has `cancelOrder`. */
  readonly cancels?: number;
  /** Returns a fault for a cancel request, before any other check. `drop-answer` still cancels. */
  miscancel?: (() => Fault | undefined) | undefined;
  /** The estimate in webhooks with a field for it. Required if the fixtures have `estimates`. */
  estimate?: string | undefined;
  /** Makes the vendor's webhook for a ticket's status, signed for this URL. */
  sign(webhookUrl: string, ticket: Ticket, nativeStatus: string): SignedWebhook;
  /** Changes the status and sends the webhook, with the vendor's repeats. Resolves with the last answer. */
  report(
    webhookUrl: string,
    ticket: Ticket,
    nativeStatus: string,
  ): Promise<{ status: number; body: unknown; attempts?: number }>;
  /** Makes the vendor's webhook about the kitchen. Required, like `setKitchen`, if the provider has `readKitchen`. */
  signKitchen?(kitchen: Kitchen): SignedWebhook;
  /** Sends it, with the vendor's repeats. Resolves with the last answer. */
  setKitchen?(webhookUrl: string, kitchen: Kitchen): Promise<{ status: number; body: unknown }>;
  /** Expires all granted tokens. Required if the provider requests tokens. */
  expireTokens?(): void;
  /** The number of granted tokens. Required if the provider requests tokens. */
  readonly grants?: number;
  /** Lifetime of a token in seconds, as its endpoint states. Required if the provider requests tokens. */
  readonly tokenSeconds?: number;
  /** Safe to repeat. */
  stop(): Promise<void>;
};

/** A simulator as its own code has it, which writes the counts that others read. */
export type Counting<Sim, Count extends 'requests' | 'reads' | 'cancels' | 'grants'> = Omit<Sim, Count> &
  Record<Count, number>;

export type StartSimulator = (options?: SimulatorOptions) => Promise<Simulator>;
