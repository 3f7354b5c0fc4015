import { AsyncLocalStorage } from 'node:async_hooks';
import { fileURLToPath } from 'node:url';
import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import { wordOf } from '../domain/member-text.ts';
import { isObject } from '../domain/json-text.ts';
import type { Cancelled, OrderInput, OrderModule } from '../domain/order-module.ts';
import { describeCause } from '../domain/explain-cause.ts';

/** The folders of our functions that mappers call. Source maps put these paths into a bundle's stack traces too. */
const OURS = ['platform/', 'core/domain/', 'core/placements/'].map((each) =>
  fileURLToPath(new URL(`../../../src/${each}`, import.meta.url)),
);
/** A package that our functions call. */
const PHONES = '/node_modules/libphonenumber-js/';

/** What a module's functions start runs in this context. */
const ofModule = new AsyncLocalStorage<true>();
let isListening = false;

/**
 * Runs a function of an order module. Keeps the process running if it leaves a promise that fails, such as a request that
 * it would have awaited after another one, which failed first, or if it is asynchronous and should not be. Any other such
 * error still ends the process.
 */
export function runModule<Answer>(run: () => Answer): Answer {
  if (!isListening) {
    isListening = true;
    process.on('unhandledRejection', (error) => {
      // guard: left-promise
      if (ofModule.getStore() === undefined) throw error;
    });
  }
  return ofModule.run(true, run);
}

/**
 * Runs a function of an order module that answers at once.
 * @throws NeedsOperator for any error, with the error's class, code, field and line. The error's message is dropped,
 *   because it may contain member data.
 */
export function askMapper<Answer>(run: () => Answer): Answer {
  try {
    return runModule(run);
  } catch (error) {
    if (error instanceof NeedsOperator) throw error;
    const { name, code, field } = (error ?? {}) as { name?: unknown; code?: unknown; field?: unknown };
    const cause = {
      code: 'order_mapper_threw',
      error: wordOf(name) ?? typeof error,
      errorCode: wordOf(code),
      field: wordOf(field),
      at: placeOf(error),
    } as const;
    throw new NeedsOperator(describeCause(cause), { cause });
  }
}

/** Makes the error of a module that asks for what it must not. @param code one word @param says continues "fetchOrder" */
export function misuse(code: string, says: string): NeedsOperator {
  const at = placeOf(new Error());
  const cause = { code: 'order_mapper_threw', error: 'RefusedRequest', errorCode: code, at } as const;
  return new NeedsOperator(`fetchOrder of ORDER_MODULE ${says}${at === undefined ? '' : `, at ${at}`}`, { cause });
}

/**
 * Maps GraphQL's `data`, or what `fetchOrder` returned. Of an order that `cancelled` names, only what can be mapped.
 * @returns null if the platform has no such order
 * @throws GiveUp with the cause `order_skipped` if the mapper called `skip`; NeedsOperator if it threw
 */
export function mapOrder(
  module: Pick<OrderModule, 'cancelled' | 'toCanonicalOrder'>,
  data: unknown,
  serviceOrderId: string,
): OrderInput | CancelledInput | null {
  const cancelled = askMapper(() => module.cancelled?.(data)) ?? null;
  if (cancelled !== null) {
    // Anything else than an object with a time is refused by name when the order is read.
    const { cancelledAt, cancelReason } = (isObject(cancelled) ? cancelled : {}) as Partial<Cancelled>;
    const mapped = mappedIfAny(module, data, serviceOrderId);
    const reason = cancelReason ?? ('cancelReason' in mapped ? mapped.cancelReason : null);
    return { ...mapped, cancelledAt: cancelledAt ?? '', cancelReason: reason };
  }
  const mapped = askMapper(() => module.toCanonicalOrder(data));
  // An order that happens to have a field with this name is no answer of `skip`.
  if (!isSkipped(mapped)) return mapped;
  const cause = { code: 'order_skipped', reason: wordOf(mapped.skipped) } as const;
  throw new GiveUp(describeCause(cause), { reason: 'the order is not for us', cause });
}

/** A cancelled order, of which any other field may be missing or wrong. `skipped` is the word of a mapper that skips it. */
export type CancelledInput = Cancelled & { serviceOrderId: string; skipped?: string };

function mappedIfAny(module: Pick<OrderModule, 'toCanonicalOrder'>, data: unknown, serviceOrderId: string) {
  try {
    const mapped = runModule(() => module.toCanonicalOrder(data));
    return isSkipped(mapped) || !isObject(mapped) ? { serviceOrderId, ...mapped } : mapped;
  } catch {
    return { serviceOrderId };
  }
}

function isSkipped(mapped: unknown): mapped is { skipped: string } {
  if (mapped === null || typeof mapped !== 'object' || Object.keys(mapped).length !== 1) return false;
  return 'skipped' in mapped && typeof mapped.skipped === 'string';
}

/** Returns where the module threw: `map-order.ts:42 (called at line 60)`, for a helper of its own. Skips our functions. */
function placeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined;
  // Skip the message at the start of the stack, because a part of it may look like a stack line.
  const calls = error.stack.slice(error.stack.indexOf(error.message) + error.message.length);
  let first: { path: string; place: string } | undefined;
  for (const [, path = '', line = ''] of calls.matchAll(/^ +at [^/\n]*(\/[^()\n]+):(\d+):\d+\)?$/gm)) {
    if ([...OURS, PHONES].some((each) => path.includes(each))) continue;
    const place = `${path.split('/').at(-1)}:${line}`;
    if (first !== undefined) return first.path === path ? `${first.place} (called at line ${line})` : first.place;
    if (!/^[\w.:-]{1,100}$/.test(place)) return undefined;
    first = { path, place };
  }
  return first?.place;
}
