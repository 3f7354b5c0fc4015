import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { sourceOf } from '../request.ts';
import { takeTurns } from '../take-turns.ts';

/** No request needs more. Each level and each value costs zod time, in which the process answers no webhook. */
const LEVELS = 32;
const VALUES = 10_000;

/** @returns what is too much in a text of JSON, in one pass over it, before it is parsed; undefined if nothing is */
export function findTooMuch(json: string): string | undefined {
  let [levels, values, isText] = [0, 0, false];
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (character === '"') isText = !isText;
    else if (isText) at += character === '\\' ? 1 : 0;
    else if (character === '[' || character === '{') levels += 1;
    else if (character === ']' || character === '}') levels -= 1;
    else if (character === ',') values += 1;
    // guard: bounded-json
    if (levels > LEVELS || values > VALUES) return `The body has more than ${LEVELS} levels or ${VALUES} values.`;
  }
  return undefined;
}

/** A body of more bytes waits for its turn. */
const LARGE = 8 * 1024;
const WAIT_MS = 20_000;
/** After a large body, as many times the time of the event loop that it took pass until the next, for webhooks. */
const REST = 25;
const REST_MAX_MS = 5_000;
const turn = takeTurns(1);
/** How the turn of a request ends. A request may pass the hooks of several scopes. */
const ends = new WeakMap<FastifyRequest, () => void>();

/** Handles large bodies of all scopes one at a time, with a rest after each. Callers take turns. */
export function takeLargeInTurn(scope: FastifyInstance): void {
  scope.addHook('preValidation', async (request) => {
    const { body, headers, operator } = request;
    if (body === undefined || ends.has(request) || Number(headers['content-length'] ?? Infinity) <= LARGE) return;
    // guard: large-in-turn
    const begun = turn(operator?.id ?? sourceOf(request));
    const end = await Promise.race([begun, sleep(WAIT_MS, undefined, { ref: false })]);
    if (end === undefined) {
      void begun.then((unused) => unused());
      throw scope.httpErrors.serviceUnavailable('Other large bodies are handled first. Try again later.');
    }
    const before = performance.eventLoopUtilization();
    ends.set(request, () => {
      ends.delete(request);
      const { active } = performance.eventLoopUtilization(before);
      setTimeout(end, Math.min(REST_MAX_MS, REST * active)).unref();
    });
  });
  scope.addHook('onSend', async (request) => ends.get(request)?.());
}
