import { expect, it } from 'vitest';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { sendJson, serveHttp } from '../../world/network/serve-http.ts';

it('the balancer forwards to a target that started since the last poll', async () => {
  const targets: string[] = [];
  const [balancer, service] = await Promise.all([
    balanceLoad(() => targets),
    serveHttp(async (_request, response) => sendJson(response, 200, {})),
  ]);
  targets.push(service.url);
  const { status } = await fetch(balancer.url);
  await Promise.all([balancer.stop(), service.stop()]);
  expect(status).toBe(200);
});
