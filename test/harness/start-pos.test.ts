import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { sampleOrder } from '../support/sample-order.ts';
import { readBody, sendJson, serveHttp } from '../support/serve-http.ts';
import { signWebhook } from '../support/sign-webhook.ts';
import { startPos, type Pos, type PosOptions } from '../support/start-pos.ts';

const secret = `whsec_${randomBytes(32).toString('base64')}`;

async function started(options: PosOptions = { secret }): Promise<Pos> {
  const pos = await startPos(options);
  onTestFinished(() => pos.stop());
  return pos;
}

function post(pos: Pos, serviceOrderId: string, signWith = secret): Promise<Response> {
  const body = JSON.stringify(sampleOrder({ serviceOrderId }));
  return fetch(pos.ordersUrl, {
    method: 'POST',
    headers: {
      'idempotency-key': serviceOrderId,
      ...signWebhook(signWith, body, { id: serviceOrderId }),
    },
    body,
    signal: AbortSignal.timeout(300),
  });
}

test('keeps one ticket per order however often it is sent, even when its answer was lost', async () => {
  const pos = await started();
  pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : undefined);
  await expect(post(pos, 'order-1')).rejects.toThrow('fetch failed');
  const answers = [await post(pos, 'order-1'), await post(pos, 'order-1')];

  expect(pos.tickets).toMatchObject([{ serviceOrderId: 'order-1', requests: 3 }]);
  for (const answer of answers) {
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ providerOrderId: pos.tickets[0]?.providerOrderId });
  }
});

test('takes nothing that is not signed with its secret', async () => {
  const pos = await started();
  expect((await post(pos, 'order-1', `whsec_${randomBytes(32).toString('base64')}`)).status).toBe(401);
  expect(pos).toMatchObject({ tickets: [], requests: 1 });
});

test('one that cannot deduplicate makes a ticket each time, and can be asked first', async () => {
  const pos = await started({ secret, deduplicates: false });
  const lookUp = () => fetch(`${pos.ordersUrl}?reference=order-1`);
  expect((await lookUp()).status).toBe(404);
  await post(pos, 'order-1');
  expect(await (await lookUp()).json()).toEqual({ providerOrderId: pos.tickets[0]?.providerOrderId });
  await post(pos, 'order-1');
  expect(pos.tickets).toHaveLength(2);
});

test('hangs or refuses as told, without a ticket', async () => {
  const pos = await started();
  pos.behave = () => 'hang';
  await expect(post(pos, 'order-1')).rejects.toThrow('timeout');
  pos.behave = () => ({ status: 429, headers: { 'retry-after': '7' }, body: { reason: 'busy' } });
  const answer = await post(pos, 'order-1');
  expect([answer.status, answer.headers.get('retry-after'), await answer.json()]).toEqual([
    429,
    '7',
    { reason: 'busy' },
  ]);
  expect(pos.tickets).toEqual([]);
});

test('reports a status in a signed webhook', async () => {
  const pos = await started();
  await post(pos, 'order-<1>');
  const bodies: unknown[] = [];
  const receiver = await serveHttp(async (request, response) => {
    bodies.push(new Webhook(secret).verify(await readBody(request), request.headers as Record<string, string>));
    sendJson(response, 200, { outcome: 'applied' });
  });
  onTestFinished(() => receiver.stop());

  const answer = await pos.sendStatus(receiver.url, { serviceOrderId: 'order-<1>', status: 'ready', reason: 'Hot' });
  expect(answer).toEqual({ status: 200, body: { outcome: 'applied' } });
  expect(bodies).toEqual([
    { eventType: 'order.status', order: { thirdPartyReference: 'order-<1>', status: 'ready', reason: 'Hot' } },
  ]);
});
