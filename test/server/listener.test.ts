import { afterEach, expect, it, vi } from 'vitest';
import { boundConnections } from '../../src/http/bound-connections.ts';
import { createLog } from '../../src/observe/create-log.ts';
import { createListener } from '../../src/server/listener.ts';

afterEach(() => void vi.useRealTimers());

it('a listener starts although its modules take long to load', async () => {
  const log = createLog('silent', { write() {} });
  const connections = boundConnections(10, log);
  const app = createListener({ log, connections, forOperators: false, bodyLimit: 1_000 });
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const [began, loaded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  void app.register(async () => {
    began.resolve();
    await loaded.promise;
  });
  const ready = app.ready();
  await began.promise;
  vi.advanceTimersByTime(600_000);
  loaded.resolve();
  await expect(ready).resolves.toBeDefined();
  vi.useRealTimers();
  await app.close();
});
