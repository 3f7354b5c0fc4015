/** Loaded into the service's own process by `--import`: on SIGUSR2 it collects garbage and prints what remains. */
import { setTimeout as sleep } from 'node:timers/promises';

process.on('SIGUSR2', () => {
  void (async () => {
    // Some memory is freed only by finalizers, after a collection.
    for (let i = 0; i < 4; i++) {
      globalThis.gc?.();
      await sleep(20);
    }
    const { heapUsed, external, rss } = process.memoryUsage();
    const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    process.stderr.write(`MEMORY ${JSON.stringify({ heapUsed, external, rss, sockets })}\n`);
  })();
});
