import { expect, it } from 'vitest';
import { holdBodies } from '../../../tools/chaos/hold-bodies.ts';
import { serveHttp } from '../../../world/network/serve-http.ts';

it('hogs that are stopped while they connect are gone, and the run goes on', async () => {
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
