/**
 * A sample POS as the `standard` integration expects one: it takes orders over HTTP, reports their life in webhooks,
 * and signs both ways with Standard Webhooks. It can misbehave in the ways that cost a kitchen a second ticket.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import type { Status } from '../../src/core/domain/lifecycle.ts';
import { readBody, sendJson, serveHttp } from '../network/serve-http.ts';

export type PosOptions = {
  /** The POS's id of an order's ticket. By default a random one. */
  idOf?: (serviceOrderId: string) => string;
  /** A secret of Standard Webhooks, `whsec_…`. Without it nothing is verified and nothing signed. */
  secret?: string;
  /** If `false`, every request makes a new ticket, and only the look-up by reference helps. */
  deduplicates?: boolean;
  port?: number;
};

/** One ticket in the kitchen. */
export type Ticket = {
  readonly providerOrderId: string;
  /** Our reference. */
  readonly serviceOrderId: string;
  readonly idempotencyKey: string | undefined;
  readonly order: PosOrder;
  /** The number of requests for it. More than one means a recognised repeat. */
  requests: number;
  /** The last status that `sendStatus` reported. */
  status: string | undefined;
  /** Once it was cancelled at `cancelUrl`: the reason that came with it, or nothing. */
  cancelled?: { reason?: string };
};

/** The fields of the canonical order that a kitchen needs. */
export type PosOrder = {
  serviceOrderId: string;
  callOutCode?: string;
  fulfillment?: { type?: string };
  items?: { name?: string; quantity?: number; modifiers?: { name?: string }[] }[];
  notes?: string;
};

export type PosRequest = {
  order: PosOrder;
  idempotencyKey: string | undefined;
  headers: IncomingMessage['headers'];
  /** Of the URL that it was posted to. */
  query: URLSearchParams;
  /** The number of this request for the order, from 1. */
  attempt: number;
};

/**
 * `hang`: no ticket, no answer. `drop-answer`: makes the ticket and cuts the connection. A status: no ticket, this
 * answer; with `takes` it makes the ticket all the same.
 */
export type PosFault =
  | 'hang'
  | 'drop-answer'
  | { status: number; headers?: Record<string, string>; body?: unknown; takes?: true };

/** What is posted to `cancelUrl`. */
export type PosCancel = { serviceOrderId: string; providerOrderId?: string; reason?: string };

export type StatusReport = {
  /** Our reference, the POS's own, or both. */
  serviceOrderId?: string;
  providerOrderId?: string;
  /** A string for unknown statuses. */
  status: Status | (string & {});
  reason?: string;
  occurredAt?: string;
  /** `order.status` by default; any other does not concern us. */
  eventType?: string;
  /** The webhook's id. The same one again makes a duplicate for Standard Webhooks. */
  messageId?: string;
};

export type Pos = {
  readonly url: string;
  /** The URL for the location's settings. */
  readonly ordersUrl: string;
  /** Oldest first. */
  readonly tickets: readonly Ticket[];
  /** The URL that answers what became of an order, for the location's settings. */
  readonly statusUrl: string;
  /** The number of POSTs of orders, whatever their result. */
  readonly requests: number;
  /** The number of questions to `statusUrl`. */
  readonly reads: number;
  /** Returns a fault for such a question, before anything else is checked. May be set and removed at any time. */
  misread: ((query: URLSearchParams) => PosFault | undefined) | undefined;
  /** The URL that cancels orders, for the location's settings. One that is ready, or further, it refuses to cancel. */
  readonly cancelUrl: string;
  /** The number of POSTs of cancels, whatever their result. */
  readonly cancels: number;
  /** Returns a fault for a cancel, before anything else is checked. May be set and removed at any time. */
  miscancel: ((cancel: PosCancel, query: URLSearchParams) => PosFault | undefined) | undefined;
  /** Moves a ticket on, and tells nobody. */
  become(ticket: Ticket, status: string): void;
  /** Returns a fault per request. May be set and removed at any time. */
  behave: ((request: PosRequest) => PosFault | undefined) | undefined;
  /** Gets every new ticket, and may delay its answer. May be set and removed at any time. */
  onTicket: ((ticket: Ticket) => void | Promise<void>) | undefined;
  /** Posts one status to a webhook. @returns the answer; the body is parsed if it is JSON */
  sendStatus(webhookUrl: string, report: StatusReport, timeoutMs?: number): Promise<{ status: number; body: unknown }>;
  /** Safe to repeat. */
  stop(): Promise<void>;
};

const WEBHOOK_TIMEOUT_MS = 10_000;

/** What the POS knows. */
type Kitchen = {
  readonly options: PosOptions;
  readonly signer: Webhook | undefined;
  readonly tickets: Ticket[];
  readonly byKey: Map<string, Ticket>;
  readonly byReference: Map<string, Ticket>;
  readonly byId: Map<string, Ticket>;
  /** The number of requests for each order. */
  readonly attempts: Map<string, number>;
  /** When each ticket got its last status. */
  readonly moved: Map<Ticket, string>;
  requests: number;
  reads: number;
  cancels: number;
  /** What tests see and change. */
  readonly pos: Pos;
};

/** Resolves when it serves. */
export async function startPos(options: PosOptions = {}): Promise<Pos> {
  const server = await serveHttp(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://pos');
    const route = `${request.method} ${pathname}`;
    if (route === 'POST /orders') await takeOrder(kitchen, request, response, searchParams);
    else if (route === 'GET /orders') lookUp(kitchen, searchParams.get('reference'), response);
    else if (route === 'POST /cancel') await cancelOrder(kitchen, request, response, searchParams);
    else if (route === 'GET /status') showStatus(kitchen, request, response, searchParams);
    else sendJson(response, 404, { error: `no ${route} here` });
  }, options.port);

  const pos: Pos = {
    url: server.url,
    ordersUrl: `${server.url}/orders`,
    statusUrl: `${server.url}/status`,
    get tickets() {
      return kitchen.tickets;
    },
    get requests() {
      return kitchen.requests;
    },
    get reads() {
      return kitchen.reads;
    },
    misread: undefined,
    cancelUrl: `${server.url}/cancel`,
    get cancels() {
      return kitchen.cancels;
    },
    miscancel: undefined,
    become: (ticket, status) => become(kitchen, ticket, status),
    behave: undefined,
    onTicket: undefined,
    sendStatus: (webhookUrl, report, timeoutMs) => sendStatus(kitchen, webhookUrl, report, timeoutMs),
    stop: () => server.stop(),
  };
  const kitchen: Kitchen = {
    options,
    signer: options.secret === undefined ? undefined : new Webhook(options.secret),
    tickets: [],
    byKey: new Map(),
    byReference: new Map(),
    byId: new Map(),
    attempts: new Map(),
    moved: new Map(),
    requests: 0,
    reads: 0,
    cancels: 0,
    pos,
  };
  return pos;
}

async function takeOrder(
  kitchen: Kitchen,
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  kitchen.requests += 1;
  const body = await readBody(request);
  if (!isAuthentic(kitchen, body, request.headers)) {
    sendJson(response, 401, { error: 'the signature does not verify' });
    return;
  }
  const order = JSON.parse(body.toString()) as PosOrder;
  const attempt = (kitchen.attempts.get(order.serviceOrderId) ?? 0) + 1;
  kitchen.attempts.set(order.serviceOrderId, attempt);
  const idempotencyKey = request.headers['idempotency-key']?.toString();
  const fault = kitchen.pos.behave?.({ order, idempotencyKey, headers: request.headers, query, attempt });
  if (fault === 'hang') return;
  const refusal = typeof fault === 'object' ? fault : undefined;
  const { providerOrderId } =
    refusal === undefined || refusal.takes ? await ticketFor(kitchen, order, idempotencyKey) : { providerOrderId: '' };
  if (fault === 'drop-answer') request.socket.destroy();
  else if (refusal !== undefined) say(response, refusal);
  else sendJson(response, 200, { providerOrderId });
}

function isAuthentic(kitchen: Kitchen, body: Buffer, headers: IncomingMessage['headers']): boolean {
  try {
    kitchen.signer?.verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

async function ticketFor(kitchen: Kitchen, order: PosOrder, idempotencyKey: string | undefined): Promise<Ticket> {
  const key = kitchen.options.deduplicates === false ? undefined : idempotencyKey;
  const known = key === undefined ? undefined : kitchen.byKey.get(key);
  if (known !== undefined) {
    known.requests += 1;
    return known;
  }
  const { serviceOrderId } = order;
  const providerOrderId = kitchen.options.idOf?.(serviceOrderId) ?? `pos-${randomUUID()}`;
  const ticket: Ticket = { providerOrderId, serviceOrderId, idempotencyKey, order, requests: 1, status: undefined };
  kitchen.tickets.push(ticket);
  if (key !== undefined) kitchen.byKey.set(key, ticket);
  kitchen.byReference.set(serviceOrderId, ticket);
  kitchen.byId.set(providerOrderId, ticket);
  await kitchen.pos.onTicket?.(ticket);
  return ticket;
}

function lookUp(kitchen: Kitchen, reference: string | null, response: ServerResponse): void {
  const ticket = kitchen.byReference.get(reference ?? '');
  if (ticket === undefined) sendJson(response, 404, { error: 'no ticket has this reference' });
  else sendJson(response, 200, { providerOrderId: ticket.providerOrderId });
}

/** Answers what a webhook would say of the ticket now, once there is something to say. */
function showStatus(
  kitchen: Kitchen,
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): void {
  kitchen.reads += 1;
  const fault = kitchen.pos.misread?.(query);
  if (fault === 'hang') return;
  if (typeof fault === 'object') return say(response, fault);
  if (!isAuthentic(kitchen, Buffer.alloc(0), request.headers)) {
    return sendJson(response, 401, { error: 'the signature does not verify' });
  }
  const ticket = kitchen.byReference.get(query.get('thirdPartyReference') ?? '');
  const occurredAt = ticket && kitchen.moved.get(ticket);
  const { providerOrderId: id, serviceOrderId: thirdPartyReference, status } = ticket ?? {};
  if (fault === 'drop-answer') request.socket.destroy();
  else if (status === undefined) sendJson(response, 404, { error: 'no ticket has this reference' });
  else sendJson(response, 200, { eventType: 'order.status', order: { thirdPartyReference, id, status, occurredAt } });
}

async function cancelOrder(
  kitchen: Kitchen,
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  kitchen.cancels += 1;
  const body = await readBody(request);
  if (!isAuthentic(kitchen, body, request.headers)) {
    return sendJson(response, 401, { error: 'the signature does not verify' });
  }
  const cancel = JSON.parse(body.toString()) as PosCancel;
  const fault = kitchen.pos.miscancel?.(cancel, query);
  if (fault === 'hang') return;
  if (typeof fault === 'object') return say(response, fault);
  const { serviceOrderId, reason } = cancel;
  const ticket = kitchen.byReference.get(serviceOrderId);
  if (ticket === undefined) return sendJson(response, 404, { reason: 'no ticket has this reference' });
  if (/^(ready|en_route|completed)$/i.test(ticket.status ?? '')) {
    return sendJson(response, 409, { reason: 'It is on its way to you already.', reasonCode: 'other' });
  }
  ticket.cancelled ??= { ...(reason !== undefined && { reason }) };
  become(kitchen, ticket, 'CANCELLED');
  if (fault === 'drop-answer') request.socket.destroy();
  else sendJson(response, 200, { cancelled: true });
}

function become(kitchen: Kitchen, ticket: Ticket, status: string): void {
  ticket.status = status;
  kitchen.moved.set(ticket, new Date().toISOString());
}

async function sendStatus(
  kitchen: Kitchen,
  webhookUrl: string,
  report: StatusReport,
  timeoutMs = WEBHOOK_TIMEOUT_MS,
): Promise<{ status: number; body: unknown }> {
  const { serviceOrderId, providerOrderId, status, reason, occurredAt } = report;
  const { eventType = 'order.status', messageId = `msg_${randomUUID()}` } = report;
  const order = { thirdPartyReference: serviceOrderId, id: providerOrderId, status, reason, occurredAt };
  const payload = JSON.stringify({ eventType, order });
  const sentAt = new Date();
  const ticket = kitchen.byId.get(providerOrderId ?? '') ?? kitchen.byReference.get(serviceOrderId ?? '');
  if (ticket !== undefined) become(kitchen, ticket, status);
  const response = await fetch(webhookUrl, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': messageId,
      'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
      ...(kitchen.signer === undefined ? {} : { 'webhook-signature': kitchen.signer.sign(messageId, sentAt, payload) }),
    },
    body: payload,
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: response.status, body: parseIfJson(await response.text()) };
}

function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A text is sent as it is, as gateways send theirs. */
function say(
  response: ServerResponse,
  { status, headers, body }: { status: number; headers?: Record<string, string>; body?: unknown },
): void {
  if (body !== undefined && typeof body !== 'string') return sendJson(response, status, body, headers);
  response.writeHead(status, headers).end(body);
}
