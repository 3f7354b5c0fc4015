import { z } from 'zod';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';

/** For `PROVIDER_MODULES`: a POS whose webhooks are lists of our own events, passed on as they are. */
export const listPos: Provider = {
  integration: 'list',
  settings: z.object({}),
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook: ({ body }) => JSON.parse(body.toString()) as StatusEvent[],
};
export default listPos;
