/** Deliverect puts the channel link's id, with which anybody can sign on staging, into each webhook. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

const LINK = '61bcc34f657cc48c23eb60d5';
const SETTINGS = {
  clientId: 'the-client-id',
  clientSecret: 'the-client-secret',
  channelName: 'expediter',
  channelLinkId: LINK,
  hmacSecret: LINK,
  baseUrl: 'http://127.0.0.1:9',
};

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test' } });
  operator = await askOperator(stage.app);
  await stage.addLocation('club-1', SETTINGS, 'deliverect');
});
afterAll(() => stage?.stop());

async function send(text: string): Promise<string> {
  const signature = createHmac('sha256', LINK).update(text).digest('hex');
  const headers = { 'x-server-authorization-hmac-sha256': signature };
  const { body } = await stage.post(await stage.webhookPath('club-1'), text, headers);
  return String(body['webhookId']);
}

it('a body with a secret of its location is stored encrypted, and can be replayed', async () => {
  const serviceOrderId = 'order-1';
  await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
  const id = await send(
    JSON.stringify({ channelOrderId: serviceOrderId, channelLink: LINK, location: 'l', status: 50 }),
  );
  const plain = await send(JSON.stringify({ channelOrderId: 'order-2', location: 'l', status: 50 }));
  const rows = await stage.query('SELECT id, body, sealed FROM webhooks');
  const bodies = new Map(
    rows.map(({ id: of, body, sealed }) => [of, { text: String(body), isSealed: sealed !== null }]),
  );
  expect(bodies.get(id)).toEqual({ text: '', isSealed: true });
  expect(bodies.get(plain)).toMatchObject({ isSealed: false });
  expect((await operator.post(`/webhooks/${id}/replay`, {})).body).toMatchObject({
    events: [{ serviceOrderId, status: 'in_progress' }],
  });
});

it('the body is shown and replayed without the secret after the location has got another secret', async () => {
  const serviceOrderId = 'order-4';
  await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
  const id = await send(
    JSON.stringify({
      channelOrderId: serviceOrderId,
      channelLink: LINK,
      location: LINK,
      status: 110,
      reason: `no ${LINK}`,
    }),
  );
  const channelLinkId = LINK.replace('6', '7');
  await stage.addLocation('club-1', { ...SETTINGS, channelLinkId, hmacSecret: channelLinkId }, 'deliverect');
  const { webhookId } = (await operator.post(`/webhooks/${id}/replay`, {})).body;
  for (const each of [id, webhookId]) {
    const { text } = await operator.get(`/webhooks/${String(each)}`);
    expect(text).toContain('"outcome":');
    expect(text).not.toContain(LINK);
  }
  const rows = await stage.query('SELECT to_json(e)::text AS row FROM status_events e');
  expect(JSON.stringify(rows)).not.toContain(LINK);
  await stage.addLocation('club-1', SETTINGS, 'deliverect');
});

it('the body is shown without the secret, and is not shown at all if the settings with the secret cannot be decrypted', async () => {
  const id = await send(JSON.stringify({ channelOrderId: 'order-3', channelLink: LINK, location: 'l', status: 50 }));
  const shown = await operator.get(`/webhooks/${id}`);
  expect(shown.body['body']).toMatchObject({ text: expect.stringContaining('"channelLink":"[secret]"') as string });
  expect(Buffer.from((shown.body['body'] as { base64: string }).base64, 'base64').toString()).not.toContain(LINK);
  await stage.query(`UPDATE locations SET settings = 'sealed by another key' WHERE location_id = 'club-1'`);
  expect((await operator.get(`/webhooks/${id}`)).body).not.toHaveProperty('body');
});
