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
  /** The prepared statement's name, or else the first word: `record-signal`, `COMMIT`, `INSERT`. */
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
  let phase: 'start-up' | 'encryption asked' | 'typed' | 'unreadable' = 'start-up';
  /** Requests in the order in which Postgres will answer. */
  const requests: Request[] = [];
  /** The last request, if it is not sent completely yet. Otherwise undefined. */
  let batch: Request | undefined;
  /** The transaction status of the last ReadyForQuery. */
  let status = '';
  /** The text of each prepared statement. */
  const prepared = new Map<string, string>();
  let withheld: Buffer[] = [];
  let cutNow: Cut | undefined;

  function begin(): Request {
    const request: Request = { done: false, refused: false };
    requests.push(request);
    return request;
  }

  function markCut(request: Request, commit: Commit | undefined): void {
    if (commit === undefined || request.cut !== undefined || requests.length > 1) return;
    const moment = decide(commit);
    if (moment !== undefined) request.cut = { ...commit, moment };
  }

  /** Marks a request as sent completely. */
  function close(request: Request): void {
    if (request.cut !== undefined && request.cut.moment !== 'answered') cutNow ??= request.cut;
  }

  const readSent = readMessages({
    form: () => (phase === 'typed' || phase === 'unreadable' ? phase : 'start-up'),
    wanted(type) {
      if (type === 'P' || type === 'Q') return TEXT_MAX;
      return type === 'B' || type === '' ? NAMES_MAX : 0;
    },
    onMessage(type, body) {
      if (type === '') {
        startUp(body);
      } else if (type === 'Q') {
        const request = begin();
        markCut(request, commitIn(stringsOf(body, 1)[0] ?? '', '', status));
        close(request);
      } else if (type === 'F') {
        begin();
      } else if (type === 'S') {
        close(batch ?? begin());
        batch = undefined;
      } else if (EXTENDED.has(type)) {
        batch ??= begin();
        if (type === 'P') {
          const [name = '', text = ''] = stringsOf(body, 2);
          prepared.set(name, text);
        } else if (type === 'B') {
          const [, name = ''] = stringsOf(body, 2);
          markCut(batch, commitIn(prepared.get(name) ?? '', name, status));
        }
      }
    },
  });

  function startUp(body: Buffer): void {
    const code = body.length < 4 ? 0 : body.readInt32BE();
    if (code === SSL_REQUEST || code === GSS_ENCRYPTION_REQUEST) {
      phase = 'encryption asked';
    } else {
      phase = 'typed';
      begin();
    }
  }

  const readAnswered = readMessages({
    form() {
      if (phase === 'encryption asked') return 'byte';
      return phase === 'unreadable' ? 'unreadable' : 'typed';
    },
    wanted: (type) => (type === 'C' || type === 'Z' || type === '' ? NAMES_MAX : 0),
    onMessage(type, body, end) {
      const [request] = requests;
      if (type === '') phase = body.toString() === 'N' ? 'start-up' : 'unreadable';
      else if (request === undefined) return;
      else if (type === 'E') request.refused = true;
      else if (type === 'C' && tagOf(body) === 'ROLLBACK') request.refused = true;
      else if (type === 'C') request.done = true;
      else if (type === 'Z') ready(request, body.toString('latin1', 0, 1), end);
    },
  });

  let chunk: Buffer = Buffer.alloc(0);
  let pass: Buffer[] = [];
  /** The bytes of the chunk before this position are done: they were passed on, or withheld. */
  let settledTo = 0;

  function ready(request: Request, statusNow: string, end: number): void {
    requests.shift();
    status = statusNow;
    const { cut } = request;
    if (cut !== undefined && request.done && !request.refused && status === IDLE) {
      cutNow ??= cut;
      return;
    }
    // The request did not commit, so the client may get the answer.
    pass.push(...withheld, chunk.subarray(settledTo, end));
    withheld = [];
    settledTo = end;
  }

  return {
    sent(bytes) {
      readSent(bytes);
      return cutNow;
    },
    answered(bytes) {
      chunk = bytes;
      pass = [];
      settledTo = 0;
      readAnswered(bytes);
      if (cutNow !== undefined) return cutNow;
      const remains = bytes.subarray(settledTo);
      if (requests[0]?.cut === undefined) pass.push(...withheld.splice(0), remains);
      else withheld.push(remains);
      return pass;
    },
    rest: () => withheld.splice(0),
  };
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
