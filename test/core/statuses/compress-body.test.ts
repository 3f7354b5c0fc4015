import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eraseMembers } from '../../../src/core/retention/erase-members.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { signWebhook } from '../../../world/pos/sign-webhook.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { statusWebhook } from '../../../world/pos/status-webhook.ts';

const secretOf = (byte: number): string => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const [RIGHT, WRONG] = [secretOf(1), secretOf(2)];
const ordersUrl = 'http://127.0.0.1:9/orders';
const LIMIT = 400_000;
const STORED_OF_TOO_LARGE = 65_536;

let stage: Stage;
let operator: Operator;
let url: string;

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, WEBHOOK_BODY_LIMIT: String(LIMIT) } });
  operator = await askOperator(stage.app);
  await stage.addLocation('club-1', { ordersUrl });
  url = await stage.webhookPath('club-1');
});
afterAll(() => stage?.stop());

/** A webhook as a POS writes one that has all of the order in it. */
function order(items: number, serviceOrderId: string = randomUUID()): Buffer {
  const { eventType, order } = statusWebhook({ serviceOrderId, status: 'READY' }) as {
    eventType: string;
    order: object;
  };
  const lines = Array.from({ length: items }, (_, nth) => ({
    id: randomUUID(),
    name: `Käse-Špätzle 🧀 ${nth}`,
    price: nth,
  }));
  return Buffer.from(JSON.stringify({ eventType, order: { ...order, lines } }));
}

async function keep(to: string, body: Buffer, headers: Record<string, string> = {}): Promise<string> {
  const answer = await stage.post(to, body, headers);
  expect(answer.status).toBe(200);
  return String(answer.body['webhookId']);
}

type Row = { body: Buffer; zstd_of: number | null };
const stored = async (id: string): Promise<Row> =>
  (await stage.query('SELECT body, zstd_of FROM webhooks WHERE id = $1', [id]))[0] as Row;

/** How an operator sees it, one by one and in the list. */
async function shown(id: string, locationId = 'club-1'): Promise<{ body: Buffer; bytes: unknown; listed: unknown }> {
  const { body } = await operator.get(`/webhooks/${id}`);
  const list = (await operator.get(`/webhooks?location=${locationId}&limit=100`)).body['webhooks'];
  const { base64 } = body['body'] as { base64: string };
  const listed = (list as Record<string, unknown>[]).find((row) => row['webhookId'] === id);
  return { body: Buffer.from(base64, 'base64'), bytes: body['bytes'], listed: listed?.['bytes'] };
}

async function expectShown(id: string, body: Buffer, locationId?: string): Promise<void> {
  const seen = await shown(id, locationId);
  expect(seen).toMatchObject({ bytes: body.length, listed: body.length });
  expect(seen.body.equals(body)).toBe(true);
}

describe('a stored body', () => {
  it.each([
    ['5 kB', 60],
    ['20 kB', 250],
    ['200 kB', 2_500],
  ])('is compressed if it has %s, and is shown byte for byte', async (_size, items) => {
    const body = order(items);
    const id = await keep(url, body);
    expect((await stored(id)).body.length).toBeLessThan(body.length / 1.5);
    await expectShown(id, body);
  });

  it.each([
    ['is small', order(25)],
    ['does not get smaller', randomBytes(10_000)],
  ])('that %s is stored as it came', async (_what, body) => {
    const id = await keep(url, body);
    expect(await stored(id)).toEqual({ body, zstd_of: null });
    await expectShown(id, body);
  });

  it('that was cut off is shown as far as it is stored', async () => {
    const body = order(5_000);
    expect(body.length).toBeGreaterThan(LIMIT);
    await expectShown(await keep(url, body), body.subarray(0, STORED_OF_TOO_LARGE));
  });

  it('is encrypted as a whole if it has our token in it', async () => {
    const body = Buffer.concat([order(200), Buffer.from(url)]);
    const id = await keep(url, body);
    expect(await stored(id)).toEqual({ body: Buffer.alloc(0), zstd_of: null });
    await expectShown(id, body);
  });

  it('is verified with its signature at a replay, and the replay stores the body unchanged', async () => {
    const locationId = 'misconfigured';
    await stage.addLocation(locationId, { ordersUrl, secret: WRONG });
    const serviceOrderId = randomUUID();
    await stage.seedOrder({ serviceOrderId, locationId });
    const body = order(1_500, serviceOrderId);
    const id = await keep(await stage.webhookPath(locationId), body, signWebhook(RIGHT, body.toString()));
    expect(await stored(id)).toMatchObject({ zstd_of: body.length });
    expect((await operator.post(`/webhooks/${id}/replay`)).body).toMatchObject({ outcome: 'dropped' });

    await stage.addLocation(locationId, { ordersUrl, secret: RIGHT });
    const { body: replayed } = await operator.post(`/webhooks/${id}/replay`);
    expect(replayed).toMatchObject({ outcome: 'applied' });
    expect(await stored(String(replayed['webhookId']))).toMatchObject({ zstd_of: body.length });
    await expectShown(String(replayed['webhookId']), body, locationId);
  });

  it('is erased with the member data of its order', async () => {
    const serviceOrderId = randomUUID();
    await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
    const id = await keep(url, order(100, serviceOrderId));
    await stage.query(`UPDATE orders SET ended_at = now() - interval '99 days' WHERE service_order_id = $1`, [
      serviceOrderId,
    ]);
    expect(await eraseMembers(stage.pool, 90)).toBe(1);
    expect((await operator.get(`/webhooks/${id}`)).body).toMatchObject({ erased: true });
    await expectShown(id, Buffer.alloc(0));
  });

  it('that does not have its recorded length is not shown: the answer is 500', async () => {
    const id = await keep(url, order(100));
    await stage.query('UPDATE webhooks SET zstd_of = 1000 WHERE id = $1', [id]);
    expect((await operator.get(`/webhooks/${id}`)).status).toBe(500);
  });
});
