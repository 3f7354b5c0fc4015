/** What needs a person, on its way to a chat or pager: signed, repeated until it is taken, and again when somebody has it. */
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AttentionEvent } from '../../src/core/domain/attention-event.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../world/system/ask-operator.ts';
import { readBody, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { nameToken } from '../../world/system/log-in.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';

const SECRET = 'whsec_fBHqi87TwPVFH5VennT0aAGsdkM7YYZrFAQWR7W8oR0=';

let pager: HttpServer;
let pos: Pos;
let system: System;
let operator: Operator;
const got: { type: string; id: string; data: AttentionEvent }[] = [];
let refusals = 1;
beforeAll(async () => {
  pager = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    got.push(new Webhook(SECRET).verify(body, request.headers as Record<string, string>) as (typeof got)[number]);
    response.writeHead((refusals -= 1) >= 0 ? 503 : 204).end();
  });
  pos = await startPos();
  system = await startSystem({
    stepped: ['placements', 'attention'],
    env: {
      OPERATOR_TOKEN,
      ATTENTION_WEBHOOK_URL: pager.url,
      NOTIFY_WEBHOOK_SECRET: SECRET,
    },
  });
  operator = await askOperator(system.urls[0] ?? '');
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
});
afterAll(async () => {
  await system?.stop();
  await Promise.all([pos?.stop(), pager?.stop()]);
});

/** Records what needs a person, and tells the pager. */
async function tell(): Promise<void> {
  await system.round('recording of attention');
  await system.round('attention');
}

it('a pager gets the beginning, the holder and the end of a problem, and again what it did not accept', async () => {
  pos.behave = () => ({ status: 404 });
  const { serviceOrderId } = await system.placeOrder();
  await system.round('placements');
  await tell();
  // It did not take this one.
  expect(got).toHaveLength(1);
  await system.query('UPDATE attention_items SET lease_until = now()');
  await tell();
  expect(got[0]).toMatchObject({
    type: 'expediter.attention.opened.v1',
    id: expect.stringMatching(/^held club-1\/\d{13}$/),
    data: {
      kind: 'held',
      locationId: 'club-1',
      count: 1,
      holder: null,
      sentence: expect.stringMatching(/^1 order of/),
    },
  });
  expect(got[1]).toEqual(got[0]);
  await system.query(`UPDATE attention_items SET opened_at = opened_at - interval '16 min'`);
  await tell();
  expect(got[2]).toMatchObject({
    data: { reminders: 1, sentence: expect.stringMatching(/^Nobody has taken it yet: 1/) },
  });
  await nameToken(system, 'Anna', ['operator']);
  await operator.send('PUT', `/orders/${serviceOrderId}/case`, { to: 'Anna' });
  await tell();
  expect(got[3]).toMatchObject({
    type: 'expediter.attention.updated.v1',
    data: {
      holder: 'Anna',
      givenBy: 'OPERATOR_TOKEN',
      sentence: expect.stringMatching(/^OPERATOR_TOKEN gave it to Anna: 1/),
    },
  });
  pos.behave = undefined;
  await operator.post(`/orders/${serviceOrderId}/retry`);
  await system.round('placements');
  await tell();
  expect(got[4]).toMatchObject({ type: 'expediter.attention.closed.v1', data: { closedAt: expect.any(String) } });
  expect(got).toHaveLength(5);
  expect(JSON.stringify(got)).not.toContain('Ada');
});
