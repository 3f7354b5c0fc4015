import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that Linux (32768) and others (49152) give to connections, and none that fetch refuses. */
const [FROM, UNTIL] = [12_000, 32_000];

/**
 * Finds a TCP port of 127.0.0.1 that was free a moment ago, for programs that cannot take "any port". No connection
 * takes it; another program that looks for one may, one time in thousands.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FROM, UNTIL);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
