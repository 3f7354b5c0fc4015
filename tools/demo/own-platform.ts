import { classifyError } from '../../src/core/domain/classify-error.ts';
import type { PlacementCode } from '../../src/core/domain/placement-cause.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { orderRefetcher } from '../../src/core/placements/refetch-order.ts';
import { readConfigOf } from '../../src/config/config.ts';
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
  /** @returns the expected end of an order that cannot be read or is skipped. @throws Error if it cannot be fetched */
  fetch(orderId: string): Promise<CanonicalOrder | 'held' | 'withdrawn'>;
};

/** What the service does with an order that the platform has, but that cannot be placed. */
const ENDS: Partial<Record<PlacementCode, 'held' | 'withdrawn'>> = {
  order_unreadable: 'held',
  order_mapper_threw: 'held',
  order_skipped: 'withdrawn',
};

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
    module: await loadOrderModule({ ORDER_MODULE: module }),
    countryOf: async () => null,
    // The service fetches the order too and writes the warning to its log.
    warn: () => {},
  });
  const fetch: OwnPlatform['fetch'] = async (orderId) => {
    const check = `ORDER_MODULE=${quoted(module)} npm run expediter -- platform check ${quoted(orderId)}`;
    const read = await refetch(orderId).catch((error: unknown) => {
      const end = ENDS[classifyError(error).cause.code];
      if (end !== undefined) return end;
      throw new Error(`order ${orderId}: ${classifyError(error).problem}\n${check}`, { cause: error });
    });
    if (read === undefined) throw new Error(`your platform has no order ${orderId}`);
    return typeof read === 'string' ? read : (read.order ?? 'withdrawn');
  };
  const fetched = await Promise.allSettled(orders.map(fetch));
  const wrong = fetched.flatMap((each) => (each.status === 'rejected' ? [(each.reason as Error).message] : []));
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  return {
    where: `${new URL(ORDER_API_URL).host} (yours), through ${module}`,
    env: { ORDER_API_URL, ...(ORDER_API_TOKEN !== undefined && { ORDER_API_TOKEN }), ORDER_MODULE: module },
    orders: fetched.flatMap((each) =>
      each.status === 'fulfilled' && typeof each.value === 'object' ? [each.value] : [],
    ),
    fetch,
  };
}
