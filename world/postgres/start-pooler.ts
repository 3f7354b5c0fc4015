import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A connection pooler, as far as a client can distinguish it from Postgres: its connections are not the server's. */
export type Pooler = {
  /** What becomes of the `options` of a new connection: refused or dropped, as some do it; by default they reach Postgres. */
  options: 'refused' | 'dropped' | undefined;
  /** Returns the URL of the same database by way of it. */
  through(databaseUrl: string): string;
  /** Ends all connections. */
  cut(): void;
  stop(): Promise<void>;
};

/** The message with a process id, sent once when a connection is made: `K`, the length 12, the id, a secret. */
const BACKEND_KEY = Buffer.from([0x4b, 0, 0, 0, 12]);
const REFUSAL = 'unsupported startup parameter: options';

export async function startPooler(databaseUrl: string, about: Partial<Pick<Pooler, 'options'>> = {}): Promise<Pooler> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (pooler.options === 'refused') {
      client.once('data', () => client.end(errorResponse(REFUSAL)));
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
    if (pooler.options === 'dropped') {
      client.once('data', (startup: Buffer) => {
        upstream.write(withoutOptions(startup));
        client.pipe(upstream);
      });
    } else {
      client.pipe(upstream);
    }
    upstream.on('data', (bytes: Buffer) => {
      const at = bytes.indexOf(BACKEND_KEY);
      if (at >= 0) bytes.writeInt32BE(1, at + BACKEND_KEY.length);
      client.write(bytes);
    });
    upstream.on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());
  }).listen(0, '127.0.0.1');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const pooler: Pooler = {
    options: about.options,
    cut,
    through(url) {
      const through = new URL(url);
      through.port = String((server.address() as AddressInfo).port);
      return through.href;
    },
    async stop() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
  await once(server, 'listening');
  return pooler;
}

/** The first message of a connection: its length, the protocol, and names and values that end in zeros. */
function withoutOptions(startup: Buffer): Buffer {
  const words = startup.subarray(8).toString('latin1');
  const kept = Buffer.from(`01234567${words.replace(/(?<=^|\0)options\0[^\0]*\0/, '')}`, 'latin1');
  startup.copy(kept, 0, 0, 8);
  kept.writeInt32BE(kept.length);
  return kept;
}

function errorResponse(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${message}\0\0`);
  const head = Buffer.alloc(5, 'E');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
