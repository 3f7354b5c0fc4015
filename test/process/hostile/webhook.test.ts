import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { until } from '../../../world/processes/until.ts';
import { webhookInputs } from '../../../world/hostile/inputs-by-endpoint.ts';
import { withstand } from './withstand.ts';

const MIB = 2 ** 20;

withstand('/webhook', webhookInputs(), (running) => {
  const open = async (token: string): Promise<Socket> => {
    const socket = connect(running().port, '127.0.0.1').on('error', () => {});
    socket.write(
      `POST /webhook/standard/club?token=${token} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    await once(socket, 'connect');
    return socket;
  };

  it('a body in chunks of one byte takes no more memory than one in a single chunk', async () => {
    const before = await running().memory();
    const sockets = await Promise.all(Array.from({ length: 4 }, () => open(running().target.token)));
    const chunks = Buffer.from('1\r\nx\r\n'.repeat(100_000));
    await Promise.all(sockets.map((socket) => new Promise((sent) => socket.write(chunks, sent))));
    // What is only on its way through is soon gone; what is held stays until the request ends.
    await until(async () => {
      const { heapUsed, external } = await running().memory();
      return heapUsed + external - before.heapUsed - before.external < 16 * MIB;
    });
    for (const socket of sockets) socket.destroy();
  });

  it('a request gets no second answer when its body becomes invalid after the 401', async () => {
    const socket = await open('wrong');
    let heard = '';
    socket.on('data', (bytes) => (heard += bytes.toString()));
    await once(socket, 'data');
    socket.write('no chunk\r\n');
    await once(socket, 'close');
    expect(heard.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
  });
});
