/** What a sender may do to us, and what it must be answered. */

/** Planted wherever a secret or a member's data may stand: no log holds it. */
export const MARKER = 'm4rk3r';

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
  | { status: 401; orCut?: true }
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

export type Say = string | Buffer | ((target: Target) => string | Buffer);

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
  wire?: Buffer;
  method?: string;
  version?: string;
};

type About = { expected: Expected; pace?: Pace; slow?: boolean };

/** A POST to the return door, right in everything that `request` does not name. */
export function toWebhook(kind: string, name: string, request: Request, about: About): HostileInput {
  return input(kind, name, about, request, {
    path: ({ token }) => `/webhook/standard/club?token=${token}&member=${MARKER}`,
    lines: [
      'Host: expediter.test',
      'Content-Type: application/json',
      `Authorization: Basic ${MARKER}`,
      `Cookie: ${MARKER}`,
    ],
  });
}

/** A POST to the forward door, right in everything that `request` does not name. */
export function toPush(kind: string, name: string, request: Request, about: About): HostileInput {
  return input(kind, name, about, request, {
    path: `/pubsub/push?member=${MARKER}`,
    lines: [
      'Host: expediter.test',
      'Content-Type: application/json',
      ({ pushToken }) => `Authorization: Bearer ${pushToken}`,
      `Cookie: ${MARKER}`,
    ],
  });
}

/** A request to follow an order, without a token unless `request` has one. */
export function toFollow(kind: string, name: string, request: Request, about: About): HostileInput {
  const usual = {
    path: `/follow?member=${MARKER}`,
    lines: ['Host: expediter.test', `Cookie: ${MARKER}`],
  };
  return input(kind, name, about, { method: 'GET', length: null, ...request }, usual);
}

/** Bytes that need not be HTTP. */
export function toSocket(kind: string, name: string, say: Say, about: About): HostileInput {
  return {
    kind,
    name,
    bytes: (target) => bytesOf(say, target),
    body: Buffer.alloc(0),
    expected: about.expected,
    pace: about.pace ?? {},
    slow: about.slow ?? false,
  };
}

function input(
  kind: string,
  name: string,
  { expected, pace = {}, slow = false }: About,
  request: Request,
  usual: Required<Pick<Request, 'path' | 'lines'>>,
): HostileInput {
  const body = Buffer.from(request.body ?? '');
  const {
    path = usual.path,
    lines = usual.lines,
    length = body.length,
    method = 'POST',
    version = 'HTTP/1.1',
  } = request;
  const framing =
    length === null ? [] : length === 'chunked' ? ['Transfer-Encoding: chunked'] : [`Content-Length: ${length}`];
  const wire = request.wire ?? (length === 'chunked' ? chunked([body]) : body);
  const bytes = (target: Target): Buffer => {
    const head = [...lines, ...framing].flatMap((line) => [Buffer.from('\r\n'), bytesOf(line, target)]);
    const first = [Buffer.from(`${method} `), bytesOf(path, target), Buffer.from(` ${version}`)];
    return Buffer.concat([...first, ...head, Buffer.from('\r\n\r\n'), wire]);
  };
  return { kind, name, bytes, body, expected, pace, slow };
}

function bytesOf(say: Say, target: Target): Buffer {
  return Buffer.from(typeof say === 'function' ? say(target) : say);
}

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

export const UNMATCHED: Expected = { status: 200, outcome: 'unmatched' };
export const IGNORED: Expected = { status: 200, outcome: 'ignored' };
export const NOT_JSON = 'unreadable: the body is not JSON';
export const TOO_DEEP = 'unreadable: the body is nested deeper than 100';
export const NOT_UTF8 = 'unreadable: the body is not UTF-8';

export function dropped(reason: string): Expected {
  return { status: 200, outcome: 'dropped', reason };
}

export const POISON: Expected = { status: 204, order: undefined };

export function recorded(order: string): Expected {
  return { status: 204, order };
}

export function isUtf8(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString()).equals(bytes);
}
