/** HTTP between parties, without sockets. */
import { Readable } from 'node:stream';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asParty, asSimulator, currentParty, theSchedule, type Party } from './schedule.ts';
import type { Fate, Faults, Moment } from './faults.ts';

export type Request = { method: string; url: URL; headers: Record<string, string>; body: Buffer };
/** The rest of an answer that goes on, such as the stream of a member's phone. */
export type AnswerStream = {
  /** Gets what was sent, also before this call, and the end of the connection. */
  listen(onPart: (part: Buffer) => void, onEnd: () => void): void;
  /** Ends the connection, as the caller does. */
  close(): void;
};

export type Answer = {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** What follows the body, if the answer goes on. */
  stream?: AnswerStream | undefined;
};
/** Whoever answers at an origin. Undefined: nobody listens. */
export type Endpoint = { party: Party; answer(request: Request): Promise<Answer | 'cut'> };

export type Network = {
  /** Serves at an origin. `find` is called for each request. */
  serve(origin: string, find: () => Endpoint | undefined): void;
  fetch: typeof fetch;
  /** Breaks the connections of those who wait for an answer of a dead party. */
  drop(party: Party): void;
  /** For how many virtual milliseconds nobody has called anybody. */
  idleMs(): number;
};

/** How a POS, the platform or Pub/Sub behaves. */
export type OriginOfRun = {
  /** The longest time in milliseconds that its answer takes. */
  slowMs?: number | undefined;
  /** Whether nobody listens now, or nobody answers. */
  away?: 'refuses' | 'hangs' | undefined;
  /** Whether it never answers a request to cancel. */
  ignoresCancels?: boolean | undefined;
};

export type NetworkRules = {
  faults: Faults;
  /** Sees each call before it is sent. It may kill the caller. */
  onSend(party: Party, label: string, moment: Moment): void;
  /** Sees each request when it arrives and when it is answered, as long as its sender waits for the answer. */
  onCall(from: Party, request: Request, when: 'arrives' | 'is answered'): Promise<void> | void;
  /** What is known of an origin. */
  origins: ReadonlyMap<string, OriginOfRun>;
  /** Sees each answer, in the simulator. */
  onAnswer(from: Party, request: Request, answer: Answer | 'cut'): Promise<void> | void;
};

const failed = (code: string): TypeError =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });

let network: Network | undefined;
export const setNetwork = (to: Network | undefined): void => {
  network = to;
};
export function theNetwork(): Network {
  if (network === undefined) throw new Error('there is no network');
  return network;
}

/** A name of a request that is the same in each run: no ids, no tokens. */
const labelOf = ({ method, url }: Request): string => `${method} ${url.host}${url.pathname}`;

export function simulateNetwork({ faults, onSend, onCall, origins, onAnswer }: NetworkRules): Network {
  const endpoints = new Map<string, () => Endpoint | undefined>();
  const waiting = new Map<Party, Set<() => void>>();
  const callers = new Set<Party[]>();
  let lastAt = 0;

  const send = (from: Party, request: Request, signal: AbortSignal | undefined): Promise<Response> =>
    new Promise((resolve, reject) => {
      const schedule = theSchedule();
      const label = labelOf(request);
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      onSend(from, label, 'sent about an order');
      if (from.isDead) return;
      const { slowMs: mostMs = 0 } = origins.get(request.url.origin) ?? {};
      const fate = faults.ofCall(from, label);
      const slowMs = mostMs * schedule.draw(`${label} slowness`);
      // A slow POS makes the ticket late, or answers late.
      const isLate = schedule.draw(`${label} late`) < 0.5;
      const thereMs = fate.thereMs + (isLate ? slowMs : 0);
      const backMs = fate.backMs + (isLate ? 0 : slowMs);
      let isOver = false;
      const waits = (): boolean =>
        !isOver && !from.isDead && from.frozenUntil <= schedule.now() && signal?.aborted !== true;
      const isCut = (): boolean => faults.isCut(from, 'world');
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      const fail = (afterMs: number, code: string): void =>
        void schedule.after(afterMs, from, () => {
          isOver = true;
          reject(failed(code));
        });
      if (fate.kind === 'refused') return fail(fate.thereMs, 'ECONNREFUSED');
      if (fate.kind === 'lost before') return fail(fate.thereMs, 'ECONNRESET');
      const deliver = async (nth: number): Promise<void> => {
        // A cut drops what is on its way. The caller waits until its own limit.
        if (isCut()) return;
        const { away, ignoresCancels = false } = origins.get(request.url.origin) ?? {};
        if (away === 'hangs' || (ignoresCancels && request.url.pathname === '/cancel')) return;
        const endpoint = endpoints.get(request.url.origin)?.();
        if (endpoint === undefined || away === 'refuses') {
          if (nth === 1) fail(fate.backMs, 'ECONNREFUSED');
          return;
        }
        if (faults.isCut(endpoint.party, 'world')) return;
        if (waits()) await onCall(from, request, 'arrives');
        asParty(endpoint.party, () => {
          const error = errorOf(fate);
          const answering = fate.kind === 'error' ? Promise.resolve(error) : endpoint.answer(request);
          const cut = (): void => fail(0, 'ECONNRESET');
          const those = waiting.get(endpoint.party) ?? new Set();
          waiting.set(endpoint.party, those.add(cut));
          void answering.then((answer) =>
            asSimulator(() => {
              those.delete(cut);
              schedule.after(backMs, undefined, async () => {
                if (waits()) await onCall(from, request, 'is answered');
                onSend(from, label, 'answered');
                await onAnswer(from, request, answer);
                const isReplaced = fate.kind === 'done, and an error';
                if (isReplaced && answer !== 'cut') asParty(endpoint.party, () => answer.stream?.close());
                if (nth > 1 || fate.kind === 'hangs' || isCut() || faults.isCut(endpoint.party, 'world')) return;
                if (fate.kind === 'lost after' || answer === 'cut') return fail(0, 'ECONNRESET');
                const { status, headers, body, stream } = isReplaced ? error : answer;
                const isBodiless = status === 204 || status === 304;
                schedule.after(0, from, () => {
                  isOver = true;
                  const rest = stream && readStream(stream, { from, endpoint, backMs, signal, isCut, waiting: those });
                  resolve(new Response(isBodiless ? null : (rest ?? new Uint8Array(body)), { status, headers }));
                });
              });
            }),
          );
        });
      };
      schedule.after(thereMs, undefined, () => deliver(1));
      if (fate.kind === 'doubled') {
        schedule.after(fate.thereMs + 500 * schedule.draw(`${label} second`), undefined, () => deliver(2));
      }
    });

  return {
    serve: (origin, find) => void endpoints.set(origin, find),
    drop(party) {
      for (const cut of waiting.get(party) ?? []) cut();
      waiting.delete(party);
    },
    idleMs: () => {
      const isWaiting = [...callers].some(([caller]) => caller?.isDead === false);
      return isWaiting ? 0 : theSchedule().now() - lastAt;
    },
    fetch: async (input, init = {}) => {
      const party = currentParty();
      if (party === undefined) throw new Error('only parties may use the simulated network');
      const { method = 'GET', body, signal } = init;
      const url = new URL(input instanceof Request ? input.url : input);
      const headers = Object.fromEntries(new Headers(init.headers));
      const request = { method, url, headers, body: await bytesOf(body) };
      const call = [party];
      callers.add(call);
      return send(party, request, signal ?? undefined).finally(() => {
        callers.delete(call);
        lastAt = theSchedule().now();
      });
    },
  };
}

/** A 429 says when to call again. */
const errorOf = ({ status }: Fate): Answer => ({
  status,
  headers: status === 429 ? { 'retry-after': '1' } : {},
  body: Buffer.alloc(0),
});

/** What arrives of an answer that goes on. */
function readStream(
  stream: AnswerStream,
  about: {
    from: Party;
    endpoint: Endpoint;
    backMs: number;
    signal: AbortSignal | undefined;
    isCut: () => boolean;
    /** What is called when the party of the endpoint dies. */
    waiting: Set<() => void>;
  },
): ReadableStream<Uint8Array> {
  const { from, endpoint, backMs, signal, isCut, waiting } = about;
  let isOver = false;
  let isBroken = false;
  return new ReadableStream({
    start(controller) {
      const later = (run: () => void): void =>
        void theSchedule().after(backMs, from, () => {
          if (!isOver) run();
        });
      const fail = (error: unknown): void => {
        isOver = true;
        waiting.delete(cut);
        controller.error(error);
      };
      const cut = (): void => later(() => fail(failed('ECONNRESET')));
      waiting.add(cut);
      signal?.addEventListener('abort', () => {
        if (isOver) return;
        fail(signal.reason);
        theSchedule().after(backMs, endpoint.party, () => stream.close());
      });
      stream.listen(
        (part) => {
          // After a cut nothing more arrives: the reader notices the silence.
          isBroken ||= isCut();
          if (!isBroken) later(() => controller.enqueue(new Uint8Array(part)));
        },
        () => {
          if (isBroken) return;
          later(() => {
            isOver = true;
            waiting.delete(cut);
            controller.close();
          });
        },
      );
    },
  });
}

async function bytesOf(body: RequestInit['body']): Promise<Buffer> {
  if (body === null || body === undefined) return Buffer.alloc(0);
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body);
  return Buffer.from(await new Response(body).arrayBuffer());
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Calls a handler of Node's HTTP server with a request and a response that have no socket. */
export function callHandler(handle: Handle, { method, url, headers, body }: Request): Promise<Answer | 'cut'> {
  return new Promise((resolve) => {
    const request = Object.assign(Readable.from(body.length > 0 ? [body] : []), {
      method,
      url: `${url.pathname}${url.search}`,
      headers,
      socket: { destroy: () => resolve('cut'), remoteAddress: '127.0.0.1' },
    });
    const head: { status: number; headers: Record<string, string> } = { status: 200, headers: {} };
    const response = {
      headersSent: false,
      destroyed: false,
      writeHead(status: number, more: Record<string, string> = {}) {
        response.headersSent = true;
        head.status = status;
        Object.assign(head.headers, more);
        return response;
      },
      setHeader(name: string, value: string) {
        head.headers[name] = value;
        return response;
      },
      end(text: string | Buffer = '') {
        response.headersSent = true;
        resolve({ ...head, body: Buffer.from(text) });
        return response;
      },
    };
    void handle(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
}
