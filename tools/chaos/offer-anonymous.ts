/** Sends a flood of requests from its own process. The first message to it is the `Flood`. It ends when all is sent. */
import { connect, type Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerParent } from './ask-process.ts';

export type Flood = {
  port: number;
  /** Paths and queries, used in turn. */
  targets: string[];
  bodyBytes: number;
  perSecond: number;
  seconds: number;
  /** The path and query of a good webhook. Each connection sends it first, like the connections of a load balancer. */
  greeting?: string | undefined;
};

/** The most connections at a time. Requests that would need more are not sent, and are counted as `not sent`. */
const CONNECTIONS = 500;

/** A request that is later than this is not sent. */
const LATE_MS = 5;

/** Sends at a steady pace, whatever the answers, and reuses connections that stay open. @returns answers by status */
async function offerStrangers({ port, targets, bodyBytes, greeting, ...pace }: Flood): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  const count = (what: string): void => void (answers[what] = (answers[what] ?? 0) + 1);
  const body = Buffer.alloc(bodyBytes, ' ');
  const heads = targets.map((target) =>
    Buffer.from(`POST ${target} HTTP/1.1\r\nhost: x\r\ncontent-length: ${bodyBytes}\r\n\r\n`),
  );
  const good = `POST ${greeting} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`;
  const all = new Set<Socket>();
  const idle: Socket[] = [];
  const open = (): Socket => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    all.add(socket);
    socket.on('data', (chunk: Buffer) => {
      // An answer arrives in one packet, which begins with its status line.
      const text = chunk.toString('latin1', 0, 12);
      if (!text.startsWith('HTTP/1.1 ')) return;
      count(text.slice(9));
      if (!chunk.includes('onnection: close')) idle.push(socket);
    });
    socket.on('error', () => count('broken'));
    socket.on('close', () => all.delete(socket));
    return socket;
  };

  const began = performance.now();
  for (let nth = 0; nth < pace.perSecond * pace.seconds; nth += 1) {
    const dueIn = began + (nth * 1_000) / pace.perSecond - performance.now();
    if (dueIn > 1) await sleep(dueIn);
    // Late requests are skipped. Sending them all at once later would be a different, higher load.
    if (dueIn < -LATE_MS) {
      count('not sent');
      continue;
    }
    let socket = idle.pop();
    while (socket?.destroyed === true) socket = idle.pop();
    if (socket === undefined && all.size >= CONNECTIONS) {
      count('not sent');
      // When the sender is late, it skips the sleep above. Without this pause, it would read no answers.
      if (nth % 100 === 0) await sleep(0);
      continue;
    }
    if (socket === undefined) {
      socket = open();
      // A new connection now sends only the good webhook. Its requests of the flood follow later.
      if (greeting !== undefined) {
        socket.write(good);
        continue;
      }
    }
    socket.write(heads[nth % heads.length] ?? '');
    if (bodyBytes > 0) socket.write(body);
  }
  await sleep(500);
  for (const socket of all) socket.destroy();
  return answers;
}

// Real senders use their own machines, so this process should take little time from the service.
setPriority(constants.priority.PRIORITY_LOW);
answerParent(offerStrangers);
