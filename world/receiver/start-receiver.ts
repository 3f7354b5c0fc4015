import { createHash } from 'node:crypto';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../network/serve-http.ts';

/** A message whose signature was right, and how it was answered. */
export type Received = {
  /** The header `webhook-id`. */
  id: string;
  contentType: string;
  /** The CloudEvent, as it came. */
  event: Record<string, unknown>;
  /** Its subject, such as the order. */
  subject: string;
  sequence: number;
  /** When it came, by the monotonic clock in milliseconds. */
  at: number;
  /** The status of the answer; undefined if there was none. */
  answer: number | undefined;
};

/**
 * How the receiver misbehaves:
 * - `hang`: it never answers. `close`: it reads the message and closes the connection.
 * - `keeps`: it keeps the message, and answers an error all the same.
 */
export type ReceiverFault =
  | 'hang'
  | 'close'
  | { status: number; headers?: Record<string, string>; keeps?: boolean }
  | { lateMs: number };

export type Receiver = {
  url: string;
  secret: string;
  /** All that came with a right signature. */
  received: Received[];
  /** What it has: the messages that it answered 2xx, or kept, in that order. */
  taken: Received[];
  /** How many messages had a wrong signature. They are answered 401. */
  refused: () => number;
  /** Decides about each message whose signature is right. */
  behave: ((message: Received) => ReceiverFault | undefined | Promise<ReceiverFault | undefined>) | undefined;
  /** Closes connections before it reads a message. */
  isDeaf: boolean;
  /** Closes the port and all connections. */
  leave(): Promise<void>;
  /** Opens the same port again. */
  comeBack(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Starts a receiver of the messages for STATUS_WEBHOOK_URL. The official package of Standard Webhooks checks each
 * signature, with a tolerance of five minutes.
 */
export async function startReceiver({
  secret = `whsec_${createHash('sha256').update('receiver').digest('base64')}`,
}: { secret?: string } = {}): Promise<Receiver> {
  const webhook = new Webhook(secret);
  let refused = 0;

  const serve = (port?: number): Promise<HttpServer> =>
    serveHttp(async (request, response) => {
      if (receiver.isDeaf) return void request.socket.destroy();
      const body = await readBody(request);
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      let event: Record<string, unknown>;
      try {
        event = webhook.verify(body, headers) as Record<string, unknown>;
      } catch (error) {
        if (!(error instanceof WebhookVerificationError)) throw error;
        refused += 1;
        return sendJson(response, 401, { error: error.message });
      }
      const message: Received = {
        id: headers['webhook-id'] ?? '',
        contentType: headers['content-type'] ?? '',
        event,
        subject: String(event['subject']),
        sequence: Number(event['sequence']),
        at: performance.now(),
        answer: undefined,
      };
      receiver.received.push(message);
      const fault = await receiver.behave?.(message);
      if (fault === 'hang') return;
      if (typeof fault === 'object' && 'lateMs' in fault) {
        await new Promise((resolve) => setTimeout(resolve, fault.lateMs).unref());
        // The sender has given up, or the receiver went away.
        if (response.destroyed) return;
      }
      if (fault === 'close') return void request.socket.destroy();
      const {
        status = 204,
        headers: extra,
        keeps = false,
      } = typeof fault === 'object' && 'status' in fault ? fault : {};
      message.answer = status;
      if (keeps || (status >= 200 && status < 300)) receiver.taken.push(message);
      response.writeHead(status, extra).end();
    }, port);

  let server: HttpServer | undefined = await serve();
  const { port, url } = server;
  const receiver: Receiver = {
    url: `${url}/statuses`,
    secret,
    received: [],
    behave: undefined,
    isDeaf: false,
    taken: [],
    refused: () => refused,
    async leave() {
      await server?.stop();
      server = undefined;
    },
    async comeBack() {
      server ??= await serve(port);
    },
    stop: () => receiver.leave(),
  };
  return receiver;
}

/** The live messages of an order that a receiver has, each once, in the order in which it got them. */
export function liveOf(receiver: Receiver, serviceOrderId: string): LiveMessage[] {
  const messages = new Map<string, LiveMessage>();
  for (const { id, subject, event } of receiver.taken) {
    if (subject === serviceOrderId && !messages.has(id)) messages.set(id, event['data'] as LiveMessage);
  }
  return [...messages.values()];
}
