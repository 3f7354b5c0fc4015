/** What a sender may do to us, and what it must be answered. */

/** Planted wherever a secret or a member's data may stand: no log holds it. */
export const MARKER = 'm4rk3r';
/** Of the location `signed`. */
export const SECRET = `whsec_${Buffer.alloc(24, 'hostile').toString('base64')}`;

/** Where inputs are sent, known once the service runs. */
export type Target = {
  /** The token of the location `club`. */
  token: string;
  /** A location whose webhooks are signed, and its token. */
  signedToken: string;
  /** A location whose POS sends lists of events, and its token. */
  listToken: string;
  /** A `Bearer` token that is right in everything. */
  pushToken: string;
  /** A token for signals by HTTP. */
  signalToken: string;
  /** A push token with these claims and header in place of the usual ones; undefined leaves one out. */
  signPushToken(about: PushTokenChanges): string;
};

export type PushTokenChanges = {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  /** `ours` is in the key set, `stranger` is not, `public` is our public key's PEM used as an HMAC secret. */
  signer?: 'ours' | 'anonymous' | 'public' | 'nobody';
};

export type Expected =
  /** A webhook that is stored: its row has this outcome, the exact bytes, and a reason that begins so. */
  | { status: 200; outcome: 'dropped'; reason: string; beginning?: true; orCut?: true }
  | { status: 200; outcome: 'ignored' | 'unmatched' }
  /** A push that is acknowledged: it recorded this order, or none. */
  | { status: 204; order: string | undefined; orCut?: true }
  /** Not stored, not recorded. */
  | { status: 400 | 401; orCut?: true }
  /** This very answer, its headers in this order, and its body. */
  | { status: 401; exactly: object }
  /** A stream. */
  | { status: 200; outcome: 'followed' }
  | { status: 500 | 503 }
  /** No door is there. */
  | { status: 404 }
  /** The sender left before there could be an answer. */
  | { status: 'none' };

export type Pace = {
  /** So many bytes at once, then a pause, instead of everything at once; `body`: the head still goes at once. */
  dribble?: { bytes: number; everyMs: number; of?: 'body' };
  /** After all that was to be sent; otherwise the sender waits for its answer. */
  afterwards?: 'half-close' | 'leave';
  /** This again and again after all the rest, until there is an answer; never more than 64 MiB. */
  flood?: Buffer;
};

export type HostileInput = {
  kind: string;
  name: string;
  /** Everything that is written, from the first byte of the head on. */
  bytes: (target: Target) => Buffer;
  /** The body a webhook's row must hold. */
  body: Buffer;
  expected: Expected;
  pace: Pace;
  /** It is cut off by a time-out of ours, so it takes some 15 s. */
  slow: boolean;
};

/** Latin-1. `<token>` and the like stand for the target's. */
export type Say = string | ((target: Target) => string);

/** A request in parts; what is left out is as an honest sender would have it. */
export type Request = {
  /** Path and query, in full. */
  path?: Say;
  /** Lines of the head, without the length. */
  lines?: readonly Say[];
  body?: string | Buffer;
  /** `chunked` announces chunks, `null` nothing at all. */
  length?: number | 'chunked' | null;
  /** On the wire in place of the body: a body in chunks, or one cut short. */
  wire?: string | Buffer;
  method?: string;
  version?: string;
  /** On the wire in place of all of this; it need not be HTTP. */
  raw?: string;
  pace?: Pace;
  slow?: true;
};

/** Makes inputs of one kind. */
export type Make = (name: string, expected: Expected, request?: Request) => HostileInput;

const HOST = 'Host: expediter.test';
const JSON_TYPE = 'Content-Type: application/json';
const COOKIE = `Cookie: ${MARKER}`;

/** A POST to the return door, right in everything that the request does not name. */
export const toWebhook = makerOf({
  path: `/webhook/standard/club?token=<token>&member=${MARKER}`,
  lines: [HOST, JSON_TYPE, `Authorization: Basic ${MARKER}`, COOKIE],
});

/** A POST to the forward door, right in everything that the request does not name. */
export const toPush = makerOf({
  path: `/pubsub/push?member=${MARKER}`,
  lines: [HOST, JSON_TYPE, 'Authorization: Bearer <pushToken>', COOKIE],
});

/** A POST to the door of signals by HTTP, right in everything that the request does not name. */
export const toSignal = makerOf({
  path: `/signal?token=<signalToken>&member=${MARKER}`,
  lines: [HOST, JSON_TYPE, `Authorization: Basic ${MARKER}`, COOKIE],
});

/** A request to follow an order, without a token unless the request has one. */
export const toFollow = makerOf({
  path: `/follow?member=${MARKER}`,
  lines: [HOST, COOKIE],
  method: 'GET',
  length: null,
});

function makerOf(usual: Request): (kind: string) => Make {
  return (kind) => (name, expected, request) => {
    const { path = '', lines = [], length, wire, raw, pace = {}, slow = false, ...rest } = { ...usual, ...request };
    const { method = 'POST', version = 'HTTP/1.1' } = rest;
    const body = Buffer.from(rest.body ?? '');
    const framing = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length ?? body.length}`;
    const after = Buffer.from(wire ?? (length === 'chunked' ? chunked([body]) : body));
    const bytes = (target: Target): Buffer => {
      if (raw !== undefined) return Buffer.from(raw, 'latin1');
      const said = [path, ...lines].map((say) => filled(say, target));
      const head = [`${method} ${said[0]} ${version}`, ...said.slice(1), ...(length === null ? [] : [framing])];
      return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), after]);
    };
    return { kind, name, bytes, body, expected, pace, slow };
  };
}

function filled(say: Say, target: Target): string {
  if (typeof say === 'function') return say(target);
  return say.replaceAll(/<(token|signedToken|listToken|pushToken|signalToken)>/g, (_, name: 'token') => target[name]);
}

/** The words of a text. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

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
  oversized: Extract<
    Expected,
    { status: 200; outcome: 'dropped' } | { status: 204 } | { status: 400 | 401; orCut?: true }
  >;
  /** The same request with nothing that lets it in. */
  uninvited: Pick<Request, 'path' | 'lines'>;
};

/** As `Transfer-Encoding: chunked` writes these, with its end unless there is none. */
export function chunked(pieces: readonly Buffer[], end = '0\r\n\r\n'): Buffer {
  const parts = pieces
    .filter((piece) => piece.length > 0)
    .flatMap((piece) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
  return Buffer.concat([...parts, Buffer.from(end)]);
}

/** The `standard` integration's webhook about an order nobody has, with these fields in place of the usual ones. */
export function statusText(order: Record<string, unknown>, more: Record<string, unknown> = {}): string {
  return JSON.stringify({
    eventType: 'order.status',
    order: { id: `${MARKER}-1`, status: 'READY', reason: MARKER, ...order },
    ...more,
  });
}

export const REFUSED: Expected = { status: 401 };
export const NO_ORDER: Expected = { status: 400 };
export const NO_ENDPOINT: Expected = { status: 404 };
export const UNREADABLE: Expected = { status: 500 };
export const UNMATCHED: Expected = { status: 200, outcome: 'unmatched' };
export const IGNORED: Expected = { status: 200, outcome: 'ignored' };
export const NOT_JSON = 'unreadable: the body is not JSON';
export const TOO_DEEP = 'unreadable: the body is nested deeper than 100';
export const NOT_UTF8 = 'unreadable: the body is not UTF-8';

export function dropped(reason: string): Expected {
  return { status: 200, outcome: 'dropped', reason };
}

export const POISON: Expected = { status: 204, order: undefined };

export function recorded(order: string | undefined): Expected {
  return { status: 204, order };
}

export function isUtf8(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString()).equals(bytes);
}
