import {
  MARKER,
  NOT_JSON,
  NOT_UTF8,
  POISON,
  UNMATCHED,
  UNREADABLE,
  dropped,
  isUtf8,
  recorded,
  statusText,
  toPush,
  toWebhook,
  type Expected,
  type Request,
} from './hostile-input.ts';

/** What the two doors have in common on the wire, and where they differ. */
export type Door = {
  to: typeof toWebhook;
  path: string;
  /** Lines that a head must hold to be let in. */
  usual: readonly string[];
  /** A body that is right, told apart from the others by its name. */
  good(name: string): { body: string; expected: Expected };
  junk(body: string | Buffer): Expected;
  /** The request began and could not be read to its end. */
  interrupted: Expected;
  /** Bytes. */
  limit: number;
  oversized: Extract<Expected, { status: 200; outcome: 'dropped' } | { status: 204 }>;
  /** The same request with nothing that lets it in. */
  uninvited: Pick<Request, 'path' | 'lines'>;
};

export const MIB = 2 ** 20;

export const RETURN_ENDPOINT: Door = {
  to: toWebhook,
  path: '/webhook/standard/club',
  usual: ['Host: x'],
  good: (name) => ({ body: statusText({ id: `${MARKER}-${name}`.slice(0, 255) }), expected: UNMATCHED }),
  junk: (body) => dropped(isUtf8(Buffer.from(body)) ? NOT_JSON : NOT_UTF8),
  interrupted: UNREADABLE,
  limit: MIB,
  oversized: { status: 200, outcome: 'dropped', reason: `over ${MIB} bytes`, beginning: true },
  // As long as a token from before there were checksums, so that Postgres is asked.
  uninvited: { path: `/webhook/standard/club?token=${MARKER.padEnd(43, 'x')}` },
};

export const FORWARD_ENDPOINT: Door = {
  to: toPush,
  path: '/pubsub/push',
  usual: ['Authorization: Bearer <pushToken>'],
  good: (name) => ({ body: JSON.stringify({ orderId: `h-${name}` }), expected: recorded(`h-${name}`) }),
  junk: () => POISON,
  interrupted: { status: 503 },
  limit: 16 * MIB,
  oversized: { status: 204, order: undefined },
  uninvited: { lines: [`Authorization: Bearer ${MARKER}.${MARKER}.${MARKER}`] },
};
