import { once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { describeCause } from '../domain/explain-cause.ts';
import { NeedsOperator, TryAgain } from '../domain/errors.ts';
import { isObject } from '../domain/json-text.ts';
import { OrderError, type OrderModule } from '../domain/order-module.ts';
import { describeFailure } from '../egress/bounded-fetch.ts';
import { askMapper, runModule } from './ask-mapper.ts';

/** Time for one order: its headers, its requests, and the same again after the platform has refused the headers. */
export const ORDER_TIMEOUT_MS = 8_000;

export type PlatformHeaders = Readonly<Record<string, string>>;

export type Credentials = {
  /** `ORDER_API_TOKEN`. */
  token: string | undefined;
  /** Reads the token again, if a file has it. It may throw while the file is replaced. */
  readToken?: (() => string | undefined) | undefined;
};

/**
 * Makes the headers of a module once, and keeps them until the platform refuses them. Both functions throw only TryAgain
 * or NeedsOperator, at the latest when their signal is aborted.
 */
export function headerKeeper(module: Pick<OrderModule, 'headers'>, { token, readToken }: Credentials) {
  let current = token;
  let making: Promise<PlatformHeaders> | undefined;
  let kept: PlatformHeaders | undefined;
  const get = async (signal: AbortSignal): Promise<PlatformHeaders> => {
    const made = (making ??= makeHeaders(module, current));
    try {
      const headers = await within(signal, made);
      if (making === made) kept = headers;
      return headers;
    } catch (error) {
      // Neither an error nor a function that never returns is kept.
      if (making === made) making = undefined;
      return judgeError(error);
    }
  };
  return {
    get,
    /** @param used headers that the platform has refused @returns undefined if they are as before */
    async renew(used: PlatformHeaders, signal: AbortSignal): Promise<PlatformHeaders | undefined> {
      // Of many orders that are refused at once, the first asks.
      // guard: asked-once
      if (kept === used) {
        making = undefined;
        kept = undefined;
        try {
          current = readToken?.() ?? current;
        } catch {}
      }
      const headers = await get(signal);
      return isDeepStrictEqual(headers, used) ? undefined : headers;
    },
  };
}

async function makeHeaders(module: Pick<OrderModule, 'headers'>, token: string | undefined): Promise<PlatformHeaders> {
  if (module.headers === undefined) return bearer(token);
  // `Headers` throws for what cannot be sent.
  return Object.fromEntries(new Headers(await runModule(() => module.headers?.(token))));
}

export function bearer(token: string | undefined): PlatformHeaders {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

async function within<Answer>(signal: AbortSignal, answer: Promise<Answer>): Promise<Answer> {
  const ended = signal.aborted ? Promise.resolve() : once(signal, 'abort');
  return Promise.race([answer, ended.then(() => Promise.reject(signal.reason as Error))]);
}

/**
 * Says what an error of a module's `headers` means. Who gives the tokens may be down, or refuse us.
 * @throws TryAgain or NeedsOperator
 */
function judgeError(error: unknown): never {
  const isCode = error instanceof OrderError;
  if (isCode && (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN')) {
    const cause = { code: 'platform_refuses_us' } as const;
    throw new NeedsOperator(describeCause(cause), { cause });
  }
  const { name, cause: reason } = (error ?? {}) as { name?: unknown; cause?: unknown };
  if (isCode || name === 'TimeoutError' || (name === 'TypeError' && isObject(reason))) {
    const cause = { code: isCode ? 'platform_failing' : 'platform_unreachable' } as const;
    const why = isCode ? 'INTERNAL_SERVER_ERROR' : describeFailure(error, ORDER_TIMEOUT_MS);
    throw new TryAgain(`${describeCause(cause)}. headers of ORDER_MODULE: ${why}`, { sent: false, cause });
  }
  return askMapper(() => {
    throw error;
  });
}
