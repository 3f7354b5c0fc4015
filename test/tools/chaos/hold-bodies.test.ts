import { expect, it } from 'vitest';
import { holdBodies } from '../../../tools/chaos/hold-bodies.ts';
import { serveHttp } from '../../../world/network/serve-http.ts';

it('the fault of held request bodies can be stopped while it connects', async () => {
  const server = await serveHttp(() => {});
  const connecting = Promise.withResolvers<void>();
  const stop = holdBodies(1, 2 ** 20, () => {
    queueMicrotask(connecting.resolve);
    return server.url;
  });
  await connecting.promise;
  await expect(stop()).resolves.toBeUndefined();
  await server.stop();
});
