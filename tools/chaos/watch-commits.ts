/**
 * Follows one connection to Postgres, and finds when a client sends a commit and when it gets the answer.
 * https://www.postgresql.org/docs/current/protocol-flow.html
 */
import { readMessages } from './read-messages.ts';

/**
 * A commit: the query `COMMIT` or `END`, or a statement outside a transaction that changes data, which commits
 * automatically. Not recognised: a statement that changes data only by calling a function, and a commit of a client
 * that sends its next request before the last is answered.
 */
export type Commit = {
  /** The prepared statement's name, or else the first word: `record-signals`, `COMMIT`, `INSERT`. */
  statement: string;
};

/**
 * Moments at which the connection is cut. The client cannot tell them apart, because it gets no answer:
 * - `answered`: after Postgres has answered. The commit has certainly happened.
 * - `sent`: as soon as the whole request is sent. Small requests nearly always commit, big ones often do not.
 * - `unsent`: before the request is sent completely. It has certainly not committed, and never will.
 */
export const CUT_MOMENTS = ['answered', 'sent', 'unsent'] as const;
export type CutMoment = (typeof CUT_MOMENTS)[number];

/** A connection to be cut now. */
export type Cut = Commit & { moment: CutMoment };

export type CommitWatch = {
  /** Gets the bytes to Postgres, just before they are sent. */
  sent(bytes: Buffer): Cut | undefined;
  /** Gets the bytes from Postgres. @returns the bytes that the client may get now, with earlier withheld bytes */
  answered(bytes: Buffer): Cut | Buffer[];
  /** The bytes that are still withheld when Postgres closes the connection in the middle of its answer. */
  rest(): Buffer[];
};

/** A message of the client, or a batch of messages, that Postgres answers with one ReadyForQuery. */
type Request = {
  cut?: Cut;
  /** True if Postgres answered that a statement was completed. */
  done: boolean;
  refused: boolean;
};

/** What was seen of a connection. */
type Seen = {
  readonly decide: (commit: Commit) => CutMoment | undefined;
  phase: 'start-up' | 'encryption asked' | 'typed' | 'unreadable';
  /** Requests in the order in which Postgres will answer. */
  readonly requests: Request[];
  /** The last request, if it is not sent completely yet. Otherwise undefined. */
  batch: Request | undefined;
  /** The transaction status of the last ReadyForQuery. */
  status: string;
  /** The text of each prepared statement. */
  readonly prepared: Map<string, string>;
  withheld: Buffer[];
  cutNow: Cut | undefined;
  /** The bytes that Postgres has sent last. */
  chunk: Buffer;
  /** Those that the client may get now. */
  pass: Buffer[];
  /** The bytes of the chunk before this position are done: they were passed on, or withheld. */
  settledTo: number;
};

const SSL_REQUEST = 80_877_103;
const GSS_ENCRYPTION_REQUEST = 80_877_104;
const IDLE = 'I';
const IN_TRANSACTION = 'T';
/** Parse, Bind, Describe, Execute and Close. All of them up to a Sync are one request. */
const EXTENDED = new Set(['P', 'B', 'D', 'E', 'C']);
/** Only this many bytes of a statement are searched. */
const TEXT_MAX = 64 * 1024;
/** Bytes for the names at the beginning of a Bind, and for every command tag. */
const NAMES_MAX = 1024;

/** @param decide is called at every commit, before it is sent */
export function watchCommits(decide: (commit: Commit) => CutMoment | undefined): CommitWatch {
  const seen: Seen = {
    decide,
    phase: 'start-up',
    requests: [],
    batch: undefined,
    status: '',
    prepared: new Map(),
    withheld: [],
    cutNow: undefined,
    chunk: Buffer.alloc(0),
    pass: [],
    settledTo: 0,
  };
  const readSent = readMessages({
    form: () => (seen.phase === 'typed' || seen.phase === 'unreadable' ? seen.phase : 'start-up'),
    wanted(type) {
      if (type === 'P' || type === 'Q') return TEXT_MAX;
      return type === 'B' || type === '' ? NAMES_MAX : 0;
    },
    onMessage: (type, body) => onSent(seen, type, body),
  });

  const readAnswered = readMessages({
    form() {
      if (seen.phase === 'encryption asked') return 'byte';
      return seen.phase === 'unreadable' ? 'unreadable' : 'typed';
    },
    wanted: (type) => (type === 'C' || type === 'Z' || type === '' ? NAMES_MAX : 0),
    onMessage: (type, body, end) => onAnswered(seen, type, body, end),
  });

  return {
    sent(bytes) {
      readSent(bytes);
      return seen.cutNow;
    },
    answered(bytes) {
      seen.chunk = bytes;
      seen.pass = [];
      seen.settledTo = 0;
      readAnswered(bytes);
      if (seen.cutNow !== undefined) return seen.cutNow;
      const remains = bytes.subarray(seen.settledTo);
      if (seen.requests[0]?.cut === undefined) seen.pass.push(...seen.withheld.splice(0), remains);
      else seen.withheld.push(remains);
      return seen.pass;
    },
    rest: () => seen.withheld.splice(0),
  };
}

function begin(seen: Seen): Request {
  const request: Request = { done: false, refused: false };
  seen.requests.push(request);
  return request;
}

function markCut(seen: Seen, request: Request, commit: Commit | undefined): void {
  if (commit === undefined || request.cut !== undefined || seen.requests.length > 1) return;
  const moment = seen.decide(commit);
  if (moment !== undefined) request.cut = { ...commit, moment };
}

/** Marks a request as sent completely. */
function close(seen: Seen, request: Request): void {
  if (request.cut !== undefined && request.cut.moment !== 'answered') seen.cutNow ??= request.cut;
}

function onSent(seen: Seen, type: string, body: Buffer): void {
  if (type === '') {
    startUp(seen, body);
  } else if (type === 'Q') {
    const request = begin(seen);
    markCut(seen, request, commitIn(stringsOf(body, 1)[0] ?? '', '', seen.status));
    close(seen, request);
  } else if (type === 'F') {
    begin(seen);
  } else if (type === 'S') {
    close(seen, seen.batch ?? begin(seen));
    seen.batch = undefined;
  } else if (EXTENDED.has(type)) {
    seen.batch ??= begin(seen);
    if (type === 'P') {
      const [name = '', text = ''] = stringsOf(body, 2);
      seen.prepared.set(name, text);
    } else if (type === 'B') {
      const [, name = ''] = stringsOf(body, 2);
      markCut(seen, seen.batch, commitIn(seen.prepared.get(name) ?? '', name, seen.status));
    }
  }
}

function onAnswered(seen: Seen, type: string, body: Buffer, end: number): void {
  const [request] = seen.requests;
  if (type === '') seen.phase = body.toString() === 'N' ? 'start-up' : 'unreadable';
  else if (request === undefined) return;
  else if (type === 'E') request.refused = true;
  else if (type === 'C' && tagOf(body) === 'ROLLBACK') request.refused = true;
  else if (type === 'C') request.done = true;
  else if (type === 'Z') ready(seen, request, body.toString('latin1', 0, 1), end);
}

function startUp(seen: Seen, body: Buffer): void {
  const code = body.length < 4 ? 0 : body.readInt32BE();
  if (code === SSL_REQUEST || code === GSS_ENCRYPTION_REQUEST) {
    seen.phase = 'encryption asked';
  } else {
    seen.phase = 'typed';
    begin(seen);
  }
}

function ready(seen: Seen, request: Request, statusNow: string, end: number): void {
  seen.requests.shift();
  seen.status = statusNow;
  const { cut } = request;
  if (cut !== undefined && request.done && !request.refused && seen.status === IDLE) {
    seen.cutNow ??= cut;
    return;
  }
  // The request did not commit, so the client may get the answer.
  seen.pass.push(...seen.withheld, seen.chunk.subarray(seen.settledTo, end));
  seen.withheld = [];
  seen.settledTo = end;
}

const FIRST_WORD = /^(?:\s|--[^\n]*\n)*(\w+)/;
const CHANGES_DATA = /\b(?:INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|(?<!\bFOR\s+(?:NO\s+KEY\s+)?)UPDATE)\b/i;

function commitIn(text: string, name: string, status: string): Commit | undefined {
  const word = FIRST_WORD.exec(text)?.[1]?.toUpperCase() ?? '';
  const commit = { statement: name === '' ? word : name };
  if (word === 'COMMIT' || word === 'END') return status === IN_TRANSACTION ? commit : undefined;
  if (status !== IDLE) return undefined;
  const changes =
    ['INSERT', 'UPDATE', 'DELETE', 'MERGE'].includes(word) || (word === 'WITH' && CHANGES_DATA.test(text));
  return changes ? commit : undefined;
}

/** Reads the zero-terminated strings at the beginning of a body. A string without its zero ends with the body. */
function stringsOf(body: Buffer, count: number): string[] {
  const strings: string[] = [];
  let at = 0;
  for (let nth = 0; nth < count; nth += 1) {
    const zero = body.indexOf(0, at);
    const end = zero < 0 ? body.length : zero;
    strings.push(body.toString('utf8', at, end));
    at = end + 1;
  }
  return strings;
}

/** Reads `INSERT` from `INSERT 0 1`. */
function tagOf(body: Buffer): string {
  return stringsOf(body, 1)[0]?.split(' ')[0] ?? '';
}
