import type { FulfillmentType } from '../../src/core/domain/lifecycle.ts';

export type SimulatorOptions = {
  /** Of the location; some POS never name it. EUR unless told otherwise. */
  currency?: string;
  /** How many times faster than the vendor's its waits before a repeat are; 600 makes a minute a tenth of a second. */
  hurry?: number;
  port?: number;
};

/** One ticket, read out of the vendor's own format by the simulator alone: nothing of the provider's code is used. */
export type Ticket = {
  readonly providerOrderId: string;
  /** Our reference, as the POS has it. */
  readonly serviceOrderId: string;
  readonly fulfillment: FulfillmentType;
  readonly lines: readonly TicketLine[];
  /** What the POS was told is paid, tip included, in minor units. */
  readonly paid: number | undefined;
  /** All notes about the order as a whole. */
  readonly note: string;
  /** How many requests asked for it. More than one is a repeat that was recognised. */
  requests: number;
  /** The last one that was reported. */
  status: string | undefined;
};

export type TicketLine = {
  /** The POS's own reference of the item. */
  readonly reference: string;
  /** Where the vendor's format has one. */
  readonly name: string | undefined;
  readonly quantity: number;
  readonly note: string | undefined;
  /** Where the vendor's format has a place for it. */
  readonly ageRestricted?: boolean;
  readonly modifiers: readonly { readonly reference: string; readonly quantity: number }[];
};

/** `hang`: no ticket, no answer. `drop-answer`: makes the ticket and cuts the connection. A status: no ticket, this answer. */
export type Fault = 'hang' | 'drop-answer' | { status: number; headers?: Record<string, string>; body?: unknown };

/** A request as the vendor would make it; header names in lower case. */
export type SignedWebhook = { headers: Record<string, string>; body: Buffer };

/** A POS that holds us to its vendor's documentation, for tests and the demo. */
export type Simulator = {
  readonly integration: string;
  readonly url: string;
  /** Of a location that this POS serves, with secrets of its own. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Oldest first. */
  readonly tickets: readonly Ticket[];
  /** How many requests asked for a ticket, whatever became of them. */
  readonly requests: number;
  /** Why a request was refused for its form, oldest first: what a test prints. */
  readonly refusals: readonly string[];
  /** Decides per request for a ticket, asked with our reference as it came, what goes wrong: before anything else. */
  behave: ((request: { serviceOrderId: string }) => Fault | undefined) | undefined;
  /** Hears of every new ticket. */
  onTicket: ((ticket: Ticket) => void) | undefined;
  /** The native statuses that take an order from its first report to its good end, as this POS reports them. */
  lifeOf(fulfillment: FulfillmentType): readonly string[];
  /** The webhook by which the vendor reports a status of a ticket, signed for this URL. */
  sign(webhookUrl: string, ticket: Ticket, nativeStatus: string): SignedWebhook;
  /** Sends it, and repeats it as the vendor does; resolves with the last answer, its body parsed where it is JSON. */
  report(webhookUrl: string, ticket: Ticket, nativeStatus: string): Promise<{ status: number; body: unknown }>;
  /** Where tokens expire: from now on the ones that were granted are refused. Required where a provider asks for one. */
  expireTokens?(): void;
  /** Where tokens are granted: how often. Required where a provider asks for one. */
  readonly grants?: number;
  /** Safe to repeat. */
  stop(): Promise<void>;
};

export type StartSimulator = (options?: SimulatorOptions) => Promise<Simulator>;
