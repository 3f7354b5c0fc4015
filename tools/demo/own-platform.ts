import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { classifyError } from '../../src/core/domain/classify-error.ts';
import type { PlacementCode } from '../../src/core/domain/placement-cause.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { NeedsOperator, TryAgain } from '../../src/core/domain/errors.ts';
import { orderRefetcher } from '../../src/core/placements/refetch-order.ts';
import { readConfigOf, tokenReader } from '../../src/config/config.ts';
import { loadOrderModule } from '../../src/platform/load-order-module.ts';
import { quoted } from './write-shell.ts';

/** The ordering platform of the person who runs the demo. */
export type OwnPlatform = {
  /** A description for people. */
  where: string;
  /** Environment variables for the service. */
  env: Record<string, string>;
  /** The first orders that can be read. */
  orders: readonly CanonicalOrder[];
  /**
   * @returns the expected end of an order that is not read now. `waiting`: the platform is slow or fails
   * @throws Error if the platform has no such order
   */
  fetch(orderId: string): Promise<CanonicalOrder | 'held' | 'withdrawn' | 'waiting'>;
};

/** What the service does with an order that the platform has, but that cannot be placed. */
const ENDS: Partial<Record<PlacementCode, 'held' | 'withdrawn'>> = {
  order_unreadable: 'held',
  order_mapper_threw: 'held',
  order_skipped: 'withdrawn',
};

/** How often the first orders are asked for, before the demo says that the platform does not answer. */
const TRIES = 3;
const TRY_AGAIN_MS = 500;

/**
 * Fetches the first orders, before any part of the demo is started.
 * @throws WrongEnvironment if ORDER_API_URL is missing or wrong; Error that names each order that cannot be fetched
 */
export async function ownPlatform(
  { module, orders }: { module: string; orders: readonly string[] },
  env: NodeJS.ProcessEnv,
): Promise<OwnPlatform> {
  const { ORDER_API_URL, ORDER_API_TOKEN } = readConfigOf(env, 'ORDER_API_URL', 'ORDER_API_TOKEN');
  const refetch = orderRefetcher({
    url: ORDER_API_URL,
    token: ORDER_API_TOKEN,
    readToken: tokenReader(env),
    module: await loadOrderModule({ ORDER_MODULE: module }),
    countryOf: async () => null,
    // The service fetches the order too and writes the warning to its log.
    warn: () => {},
  });
  const fetchOne = async (orderId: string, isFirst: boolean): ReturnType<OwnPlatform['fetch']> => {
    const check = `ORDER_MODULE=${quoted(module)} npm run expediter -- platform check ${quoted(orderId)}`;
    const read = await patiently(() => refetch(orderId), isFirst ? TRIES : 1).catch((error: unknown) => {
      const end = ENDS[classifyError(error).cause.code];
      if (end !== undefined) return end;
      if (!isFirst && error instanceof TryAgain) return 'waiting';
      if (!isFirst && error instanceof NeedsOperator) return 'held';
      throw new Error(`order ${orderId}: ${classifyError(error).problem}\n${check}`, { cause: error });
    });
    if (read === undefined) throw new Error(`your platform has no order ${orderId}`);
    return typeof read === 'string' ? read : (read.order ?? 'withdrawn');
  };
  const fetched = await Promise.allSettled(orders.map((orderId) => fetchOne(orderId, true)));
  const wrong = fetched.flatMap((each) => (each.status === 'rejected' ? [(each.reason as Error).message] : []));
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  return {
    where: `${new URL(ORDER_API_URL).host} (yours), through ${module}`,
    env: { ORDER_API_URL, ...tokenOf(env, ORDER_API_TOKEN), ORDER_MODULE: module },
    orders: fetched.flatMap((each) =>
      each.status === 'fulfilled' && typeof each.value === 'object' ? [each.value] : [],
    ),
    fetch: (orderId) => fetchOne(orderId, false),
  };
}

/** Asks a platform again that gave no answer in time. */
async function patiently<Answer>(ask: () => Promise<Answer>, tries: number): Promise<Answer> {
  for (let nth = 1; nth < tries; nth += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TryAgain)) throw error;
      await sleep(TRY_AGAIN_MS);
    }
  }
  return ask();
}

/** The service reads a file of the token itself, since the file may be rotated. It runs in another folder. */
function tokenOf({ ORDER_API_TOKEN_FILE: file }: NodeJS.ProcessEnv, token: string | undefined): Record<string, string> {
  if (file) return { ORDER_API_TOKEN_FILE: resolve(file) };
  return token === undefined ? {} : { ORDER_API_TOKEN: token };
}
