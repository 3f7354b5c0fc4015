import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { signWebhook } from '../../world/pos/sign-webhook.ts';
import { startPos, type Pos, type PosOptions } from '../../world/pos/start-pos.ts';

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
  });
}

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
