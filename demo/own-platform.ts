import { classifyError } from '../src/core/domain/classify-error.ts';
import type { CanonicalOrder } from '../src/core/domain/order.ts';
import { orderRefetcher } from '../src/core/placements/refetch-order.ts';
import { readConfigOf } from '../src/config.ts';
import { loadOrderModule } from '../src/platform/load-order-module.ts';

/** The ordering platform of whoever runs the demo. */
export type OwnPlatform = {
  /** A description for people. */
  where: string;
  /** Environment variables for the service. */
  env: Record<string, string>;
  /** @throws Error that says why the order cannot be placed */
  fetch(orderId: string): Promise<CanonicalOrder>;
};

/** @throws WrongEnvironment if it does not say where the platform is */
export async function ownPlatform(module: string, env: NodeJS.ProcessEnv): Promise<OwnPlatform> {
  const { ORDER_API_URL, ORDER_API_TOKEN } = readConfigOf(env, 'ORDER_API_URL', 'ORDER_API_TOKEN');
  const refetch = orderRefetcher({
    url: ORDER_API_URL,
    token: ORDER_API_TOKEN,
    module: await loadOrderModule({ ORDER_MODULE: module }),
    countryOf: async () => null,
    // The service's log has it.
    warn: () => {},
  });
  return {
    where: `${new URL(ORDER_API_URL).host} (yours), through ${module}`,
    env: { ORDER_API_URL, ...(ORDER_API_TOKEN !== undefined && { ORDER_API_TOKEN }), ORDER_MODULE: module },
    async fetch(orderId) {
      const check = `ORDER_MODULE=${module} npm run expediter -- platform check ${orderId}`;
      const read = await refetch(orderId).catch((error: unknown) => {
        throw new Error(`order ${orderId}: ${classifyError(error).problem}\n${check}`, { cause: error });
      });
      if (read === undefined) throw new Error(`your platform has no order ${orderId}`);
      return read.order;
    },
  };
}
