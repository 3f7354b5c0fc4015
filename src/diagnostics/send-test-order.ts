import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord, jsonIn } from '../core/domain/json-text.ts';
import { classifyError } from '../core/domain/classify-error.ts';
import { OrderRef, type KitchenOrder } from '../core/domain/order.ts';
import type { PosContext } from '../core/domain/provider.ts';
import {
  askPos,
  explainError,
  type LocationDeps,
  type PosDeps,
  type Unusable,
} from '../core/locations/check-location.ts';
import { getLocation, refuseHosts, WrongLocation, type Location } from '../core/locations/locations.ts';
import { beginAttempt, type AttemptEnd } from '../core/transitions/record-attempt.ts';
import type { TestClaim } from '../core/test-orders/test-order.ts';
import type { PlaceDeps } from './test-run.ts';

/** @returns the location, or why it cannot be used. @throws WrongLocation if there is no such location */
export async function openLocation(
  { pool, decryptSettings, allowedHosts }: LocationDeps,
  locationId: string,
): Promise<Location | Unusable> {
  const stored = await getLocation(pool, locationId);
  try {
    const location = { locationId, integration: stored.integration, ...(await decryptSettings(stored)) };
    refuseHosts(location.settings, location.provider, allowedHosts);
    return location;
  } catch (error) {
    if (error instanceof WrongLocation) return explainError(error, stored);
    throw error;
  }
}

/** A call about a test order. `attempt` is what its row still lacks. */
export type SentOrder = WatchedCall<OrderRef | undefined> & { attempt: AttemptEnd };

/**
 * Writes the `started` row of an attempt before the call, like the service.
 * @returns a function that sends the order, or searches it
 */
export async function beginSending(
  deps: PlaceDeps,
  location: Location,
  { claim, order }: { claim: TestClaim; order: KitchenOrder },
  answerMs: number,
  name: 'createOrder' | 'findOrder' = 'createOrder',
): Promise<() => Promise<SentOrder>> {
  const { provider } = location;
  const attempt = await beginAttempt(deps.pool, claim, name, location);
  if (attempt === undefined) throw new Error('the test order cannot be sent any more: it may have ended');
  return async () => {
    const call = await callWatched(deps, location, answerMs, async (context) =>
      name === 'createOrder'
        ? OrderRef.parse(await provider.createOrder(order, { ...context, namedTicketLately: async () => true }))
        : OrderRef.optional().parse(await provider.findOrder?.(order.serviceOrderId, context)),
    );
    return { ...call, attempt: { attempt, milliseconds: call.milliseconds, ...outcomeOf(call) } };
  };
}

function outcomeOf(call: WatchedCall<OrderRef | undefined>): Omit<AttemptEnd, 'attempt' | 'milliseconds'> {
  if ('given' in call) return { outcome: call.given === undefined ? 'absent' : 'placed' };
  const { error } = call;
  const { httpStatus } = error as { httpStatus?: number };
  const outcome = error instanceof Error ? error.name : 'unknown';
  return { outcome, httpStatus, error: classifyError(error).problem };
}

/** How long a body may take to end after its status came. */
const BODY_MS = 2_000;

/** One request and its answer. `line` must contain no secret. `idKind`: the type of the answer's `providerOrderId`. */
export type Exchange = { line: string; status?: number; idKind?: string };

export type WatchedCall<Result> = { milliseconds: number; exchange: Exchange | undefined } & (
  | { given: Result }
  | { error: unknown }
);

/**
 * Makes one call to the POS, and records its last exchange.
 * @throws the reason of `stopping`, if that aborts before the call or during it
 */
export async function callWatched<Result>(
  deps: PosDeps & { stopping?: AbortSignal },
  location: Pick<Location, 'integration' | 'provider' | 'settings'>,
  answerMs: number,
  ask: (context: PosContext<unknown>) => Promise<Result>,
): Promise<WatchedCall<Result>> {
  const { stopping } = deps;
  stopping?.throwIfAborted();
  const { fetch, lastExchange } = watchFetch(deps.posFetch);
  const began = performance.now();
  const since = (): number => Math.round(performance.now() - began);
  try {
    const limit = { seconds: answerMs / 1000, sent: true, ...(stopping && { stopping }) };
    const given = await askPos({ ...deps, posFetch: fetch }, location, limit, ask);
    const milliseconds = since();
    return { given, milliseconds, exchange: await lastExchange() };
  } catch (error) {
    stopping?.throwIfAborted();
    const milliseconds = since();
    return { error, milliseconds, exchange: await lastExchange() };
  }
}

function watchFetch(send: typeof fetch): { fetch: typeof fetch; lastExchange: () => Promise<Exchange | undefined> } {
  let last: Promise<Exchange> | undefined;
  return {
    fetch: async (input, init) => {
      const { method = 'GET', url } = input instanceof Request ? input : { ...init, url: String(input) };
      const request = `${method} ${new URL(url).origin}/…`;
      const began = performance.now();
      last = Promise.resolve({ line: `${request}, which got no answer` });
      const response = await send(input, init);
      const milliseconds = Math.round(performance.now() - began);
      const said = `${request}, answered ${response.status} in ${milliseconds} ms`;
      const text = response
        .clone()
        .text()
        .then(describeBody, () => ({ line: 'a body that was cut off' }));
      // The body is read here too, because the caller may not read it.
      last = Promise.race([text, sleep(BODY_MS, { line: 'a body that does not end' }, { ref: false })]).then(
        (body) => ({ ...body, status: response.status, line: `${said}: ${body.line}` }),
      );
      return response;
    },
    lastExchange: async () => last,
  };
}

/** Names the fields of a body, but never their values, because a login's answer contains a token. */
export function describeBody(text: string): Exchange {
  if (text.trim() === '') return { line: 'an empty body' };
  const json = jsonIn(text);
  if (json === undefined) return { line: 'no JSON' };
  if (!isRecord(json)) return { line: 'JSON, but not an object' };
  const names = Object.keys(json).slice(0, 20);
  const line = names.length === 0 ? 'an empty JSON object' : `JSON with ${names.join(', ')}`;
  return 'providerOrderId' in json ? { line, idKind: kindOf(json['providerOrderId']) } : { line };
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value === '') return 'an empty string';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
