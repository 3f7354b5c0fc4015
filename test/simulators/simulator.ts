import type { FulfillmentType } from '../../src/core/domain/lifecycle.ts';

export type SimulatorOptions = {
  /** The location's currency, EUR by default. Some POS systems never name it. */
  currency?: string;
  /** The factor by which waits before repeats are shorter than the vendor's: 600 makes a minute 0.1 s. */
  hurry?: number;
  port?: number;
};

/**
 * A ticket, parsed from the vendor's format by the simulator alone, without the provider's code. What may be undefined is
 * so where it was not sent, or the format has no field for it.
 */
export type Ticket = {
  readonly providerOrderId: string;
  /** Our reference, as the POS has it. */
  readonly serviceOrderId: string;
  /** What the POS recognises a repeat by, as it was sent: an idempotency key, or our reference. */
  readonly key: string;
  readonly fulfillment: FulfillmentType;
  /** The text by which staff call it out, where the vendor's format has a field for it. */
  readonly callOut?: string | undefined;
  readonly lines: readonly TicketLine[];
  /** The amount that the POS was told is paid, tip included, in minor units. */
  readonly paid: number | undefined;
  /** In minor units. */
  readonly tip: number | undefined;
  readonly fee: number | undefined;
  /** What all discounts take off, in minor units. Undefined if the format has no field for it. */
  readonly discount?: number | undefined;
  /** What the till adds up, of the same as `paid`: prices, tax, fee, tip, less discounts. Undefined if it adds up nothing. */
  readonly total?: number | undefined;
  /** The member. A telephone number is E.164. */
  readonly guest: {
    readonly name: string | undefined;
    readonly phone: string | undefined;
    readonly email: string | undefined;
  };
  /** All that the POS was told of where a delivery goes, its fields joined by blanks. */
  readonly address: string | undefined;
  /** When it is wanted, as a time with an offset. Undefined: as soon as possible. */
  readonly wantedAt: string | undefined;
  /** All notes about the whole order, and those for the driver. */
  readonly note: string;
  /** The number of requests for it. More than one means a recognised repeat. */
  requests: number;
  /** The last status that was reported. */
  status: string | undefined;
  /** True once it was cancelled for us, or where the POS first asks somebody, once it took that to be asked. */
  cancelled?: true | undefined;
};

export type TicketLine = {
  /** The POS's own reference of the item. */
  readonly reference: string;
  /** Only if the vendor's format has one, or the simulator's menu. */
  readonly name: string | undefined;
  readonly quantity: number;
  /** For one, in minor units, without modifiers. */
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
  /** For each one of what it belongs to. */
  readonly quantity: number;
  /** For one, in minor units, without its modifiers. */
  readonly price: number | undefined;
  /** Only if the vendor's format can nest. */
  readonly modifiers?: readonly TicketModifier[];
};

/** `hang`: no ticket, no answer. `drop-answer`: a ticket and a cut connection. A status: no ticket, this answer. */
export type Fault = 'hang' | 'drop-answer' | { status: number; headers?: Record<string, string>; body?: unknown };

/** A request as the vendor would make it. Header names are in lower case. */
export type SignedWebhook = { headers: Record<string, string>; body: Buffer };

/** A POS that enforces its vendor's documentation, for tests and the demo. */
export type Simulator = {
  readonly integration: string;
  readonly url: string;
  /** Settings of a location of this POS, with their own secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Its menu, where the POS has ids of its own: puts there what it lacks, by our id, and into the maps of `settings`. */
  readonly menu?: {
    /** @param price in minor units */
    sell(id: string, name: string, price: number): void;
    offer(id: string, name: string, price: number): void;
  };
  /** Oldest first. */
  readonly tickets: readonly Ticket[];
  /** The number of requests for a ticket, whatever their result. */
  readonly requests: number;
  /** Reasons for which malformed requests were refused, oldest first, for a test to print. */
  readonly refusals: readonly string[];
  /** Returns a fault for a request for a ticket, before anything else is checked. The reference is ours, as sent. */
  behave: ((request: { serviceOrderId: string }) => Fault | undefined) | undefined;
  /** Gets every new ticket. */
  onTicket: ((ticket: Ticket) => void) | undefined;
  /** The native statuses of an order from its first report to its good end, as this POS reports them. */
  lifeOf(fulfillment: FulfillmentType): readonly string[];
  /** Moves a ticket on at the POS, which tells nobody. Required, like `reads`, if the provider has `readStatus`. */
  become?(ticket: Ticket, nativeStatus: string): void;
  /** The number of requests that asked what became of an order. */
  readonly reads?: number;
  /** Returns a fault for such a request, before anything else is checked. */
  misread?: (() => Fault | undefined) | undefined;
  /** The number of requests to cancel an order. Required, like `miscancel`, if the provider has `cancelOrder`. */
  readonly cancels?: number;
  /** Returns a fault for such a request, before anything else is checked. `drop-answer`: it is cancelled all the same. */
  miscancel?: (() => Fault | undefined) | undefined;
  /** When an order will be ready or delivered, in all webhooks that have a field for it. Required if the fixtures have `estimates`. */
  estimate?: string | undefined;
  /** Makes the vendor's webhook for a ticket's status, signed for this URL. */
  sign(webhookUrl: string, ticket: Ticket, nativeStatus: string): SignedWebhook;
  /** Moves the ticket on and sends the webhook, with the vendor's repeats. Resolves with the last answer; the body is parsed if it is JSON. */
  report(webhookUrl: string, ticket: Ticket, nativeStatus: string): Promise<{ status: number; body: unknown }>;
  /** Expires the tokens granted so far. Required if the provider asks for tokens. */
  expireTokens?(): void;
  /** The number of tokens granted. Required if the provider asks for tokens. */
  readonly grants?: number;
  /** The seconds that a token lasts, as its endpoint says. Required if the provider asks for tokens. */
  readonly tokenSeconds?: number;
  /** Safe to repeat. */
  stop(): Promise<void>;
};

export type StartSimulator = (options?: SimulatorOptions) => Promise<Simulator>;
