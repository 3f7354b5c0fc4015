import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startCuttingNetwork, type CuttingNetwork } from '../../tools/chaos/cutting-network.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { readEvents } from '../support/read-events.ts';
import { serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { until } from '../../world/processes/until.ts';

let service: HttpServer;
let balancer: HttpServer;
let network: CuttingNetwork;
let response: ServerResponse | undefined;

beforeEach(async () => {
  response = undefined;
  service = await serveHttp((request, answer) => {
    if (request.url === '/readyz') answer.end();
    else (response = answer.writeHead(200, { 'content-type': 'text/event-stream' })).write('data: 1\n\n');
  });
  balancer = await balanceLoad(() => [service.url]);
  network = await startCuttingNetwork(balancer.url);
});
afterEach(() => Promise.all([network.stop(), balancer.stop(), service.stop()]));

const follow = async () => {
  const read = await readEvents(`${network.url}/follow`, {});
  await until(() => read.events.length === 1);
  return { events: read.events, ended: read.ended.catch(() => {}) };
};

const untilCut = (times: number): Promise<boolean> =>
  until(() => {
    if (network.cuts.network < times) network.cut(0);
    return network.cuts.network === times;
  });

it('a stream whose process dies is cut, and one whose process closes it', async () => {
  const first = await follow();
  response?.end();
  await first.ended;
  expect(network.cuts).toEqual({ network: 0, died: 0, drained: 1 });
  const second = await follow();
  await service.stop();
  await second.ended;
  expect(network.cuts).toEqual({ network: 0, died: 1, drained: 1 });
});

it('a stream that is over is not cut', async () => {
  const followed = await follow();
  response?.end('event: end\ndata: {}\n\n');
  await followed.ended;
  expect(network.cuts).toEqual({ network: 0, died: 0, drained: 0 });
});

it('the network cuts a stream at once, or within the next bytes', async () => {
  const reset = await follow();
  await untilCut(1);
  await reset.ended;
  const torn = await follow();
  await untilCut(2);
  response?.write('data: 2\n\ndata: 3\n\n');
  await torn.ended;
  expect(torn.events.map(({ data }) => data)).toEqual([1, 2]);
  expect(network.cuts).toEqual({ network: 2, died: 0, drained: 0 });
});
