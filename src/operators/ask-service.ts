import { jsonIn } from '../core/domain/json-text.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { boundedFetch } from '../core/egress/bounded-fetch.ts';
import type { Service } from '../terminal/stored-login.ts';
import { type Ask, type Operation, type Options, type Tell } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';

/** Time limit for one answer. The slowest operation takes 60 s at a POS. */
const ANSWER_MS = 90_000;
/** Number of attempts while the service is overloaded or restarts, and the longest wait between them. */
const ATTEMPTS = 4;
const WAIT_MAX_S = 10;
/** A stream sends something every 15 s. */
const SILENCE_MS = 60_000;
const CLIENT_ERRORS = [400, 403, 404, 409, 412, 422] as const;

/** The service does not accept the token. */
export class NotSignedIn extends Error {
  override readonly name = 'NotSignedIn';
}

/** Lists of many locations are long. */
const send = boundedFetch(64 * 2 ** 20);

const Problem = z.object({ status: z.int(), detail: z.string() });

export function askService({ url, token }: Service): Ask {
  const ask: Ask = async (operation, input, tell) => {
    const { method, path, body } = requestOf(operation, input);
    for (let attempt = 1; ; attempt += 1) {
      const silence = operation.api.streams === undefined ? undefined : watchSilence();
      const answer = await send(`${url}/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: silence?.signal ?? AbortSignal.timeout(ANSWER_MS),
      }).catch((error: unknown) => {
        silence?.stop();
        throw new Error(`the service at ${url} does not answer: ${reasonOf(error)}`, { cause: error });
      });
      if (answer.ok && silence !== undefined)
        return readProgress(answer, silence.heard, url, tell).finally(silence.stop);
      silence?.stop();
      const text = await answer.text();
      if (answer.ok) return JSON.parse(text, revive) as object;
      // Nothing was done: the process is at its limit, stops, or has no database.
      if (answer.status === 503 && attempt < ATTEMPTS) {
        const seconds = Number(answer.headers.get('retry-after') ?? attempt);
        await sleep(Math.min(Number.isFinite(seconds) ? seconds : attempt, WAIT_MAX_S) * 1_000);
        continue;
      }
      throw refusalOf(answer.status, text, url);
    }
  };
  return async (operation, input, tell) => {
    const first = await ask(operation, input, tell);
    if (operation.join === undefined) return first;
    const parts = [first];
    while (nextOf(parts.at(-1)) !== null) parts.push(await ask(operation, { ...input, cursor: nextOf(parts.at(-1)) }));
    return operation.join(parts);
  };
}

/** A signal that aborts after a silence. */
function watchSilence(): { signal: AbortSignal; heard(): void; stop(): void } {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), SILENCE_MS);
  return { signal: silence.signal, heard: () => void timer.refresh(), stop: () => clearTimeout(timer) };
}

/** Reads the events of an operation with `streams`. @returns the output */
async function readProgress(
  { body }: Response,
  heard: () => void,
  url: string,
  tell: Tell | undefined,
): Promise<object> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value } = (await reader?.read().catch(() => undefined)) ?? {};
    if (value === undefined) {
      throw new Error(`the connection to the service at ${url} broke, so the service ended the work. Try again`);
    }
    heard();
    const events = (rest + value).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const [, name, json] = /^event: (.*)\ndata: (.*)$/m.exec(event) ?? [];
      if (name === undefined || json === undefined) continue;
      const data = JSON.parse(json, revive) as object;
      if (name === 'done') return data;
      if (name === 'failed') throw refusalOf(Problem.parse(data).status, json, url);
      tell?.(name, data);
    }
  }
}

function nextOf(part: object | undefined): unknown {
  return part !== undefined && 'next' in part ? part.next : null;
}

/** Splits an input into path, query and body, as the schemas of the operation say. */
function requestOf(
  { api, params, query, body }: Operation,
  input: Options,
): { method: string; path: string; body: object | undefined } {
  const [method = '', route = ''] = api.route.split(' ');
  const inPath = Object.keys(params?.shape ?? {});
  const inQuery = Object.keys(query?.shape ?? {});
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  const path = route.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(input[name])));
  const search = given.filter(([name]) => inQuery.includes(name)).map(([name, value]) => [name, asText(value)]);
  const rest = given.filter(([name]) => !inPath.includes(name) && !inQuery.includes(name));
  return {
    method,
    path: search.length === 0 ? path : `${path}?${new URLSearchParams(search as [string, string][]).toString()}`,
    body: body === undefined ? undefined : Object.fromEntries(rest),
  };
}

function asText(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

/** A time as JSON has it. A text that looks like one is printed in the same way as a date. */
function revive(_name: string, value: unknown): unknown {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) ? new Date(value) : value;
}

function refusalOf(status: number, text: string, url: string): Error {
  const { detail = `the service answered ${status} without a reason: check that ${url} is its URL` } =
    Problem.safeParse(jsonIn(text)).data ?? {};
  if (status === 401)
    return new NotSignedIn(`You are not signed in at ${url}, or no longer. Run: expediter login ${url}`);
  const known = CLIENT_ERRORS.find((each) => each === status);
  return known === undefined ? new Error(detail) : new NotDone(known, detail);
}

/** Codes of Node for a certificate that no known authority signed. */
const UNTRUSTED = /SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE/;

export function reasonOf(error: unknown, limitMs = ANSWER_MS): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError') return `no answer in ${limitMs / 1_000} s`;
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const { code = cause.message } = cause as NodeJS.ErrnoException;
  if (!UNTRUSTED.test(code)) return code;
  return `its certificate is not trusted (${code}). Set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority`;
}
