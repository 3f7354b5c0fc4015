/** docs/asyncapi.yaml: made of the code, right by AsyncAPI's own rules, and true at the doors and on the topics. */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Parser } from '@asyncapi/parser';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { makeBusy } from '../../src/core/locations/settle-kitchens.ts';
import { sealSpilled } from '../../src/core/spill/spill-webhook.ts';
import { asyncapi, attentionSchema, kitchenSchema } from '../../scripts/write-asyncapi.ts';
import { startPos } from '../support/start-pos.ts';
import { AUDIENCE, SERVICE_ACCOUNT, post, startSystem, statusWebhook, type System } from '../support/start-system.ts';
import { until } from '../support/until.ts';

const text = await readFile(new URL('../../docs/asyncapi.yaml', import.meta.url), 'utf8');
type Message = {
  headers?: { properties: object };
  payload?: object;
  examples?: { payload?: object; headers?: Record<string, string> }[];
};
const { messages } = (parse(text) as { components: { messages: Record<string, Message> } }).components;
const wrongWith = (schema: object | undefined, value: unknown): unknown => {
  const validate = new Ajv({ validateFormats: false }).compile(schema ?? {});
  return validate(value) ? undefined : validate.errors;
};

it('is what the code has', async () => {
  // Where it is not: npm run asyncapi
  expect(parse(text)).toEqual(asyncapi());
  const schema = await readFile(new URL('../../docs/kitchen-availability.schema.json', import.meta.url), 'utf8');
  expect(JSON.parse(schema)).toEqual(kitchenSchema());
  const attention = await readFile(new URL('../../docs/attention-event.schema.json', import.meta.url), 'utf8');
  expect(JSON.parse(attention)).toEqual(attentionSchema());
});

it("is right by AsyncAPI's own parser, which finds what is wrong", async () => {
  const { document, diagnostics } = await new Parser().parse(text);
  expect(diagnostics).toEqual([]);
  expect(document?.channels().all()).toHaveLength(5);

  const broken = text.replace("$ref: '#/channels/orderStatus'", "$ref: '#/channels/elsewhere'");
  expect((await new Parser().parse(broken)).document).toBeUndefined();
});

describe('the service', () => {
  let system: System;
  beforeAll(async () => {
    // Spans go nowhere, and are named all the same.
    system = await startSystem({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
    await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  });
  afterAll(() => system?.stop());

  it('tells what is described, and no attribute more', async () => {
    await system.seedOrder({ serviceOrderId: 'told', locationId: 'club-1' });
    await system.placeOrder({ serviceOrderId: 'placed', locationId: 'club-1' });
    const status = statusWebhook({ serviceOrderId: 'told', status: 'CANCELLED', reason: 'the oven is cold' });
    await post(await system.webhookUrl('club-1'), status);
    const told = await until(() => {
      const published = system.pubsub.published('order-status');
      return new Set(published.map(({ orderingKey }) => orderingKey)).size === 2 && published;
    });
    for (const { data, attributes } of told) {
      expect(wrongWith(messages['liveMessage']?.payload, JSON.parse(data.toString()))).toBeUndefined();
      expect(wrongWith(messages['liveMessage']?.headers, attributes)).toBeUndefined();
      expect(Object.keys(messages['liveMessage']?.headers?.properties ?? {})).toEqual(
        expect.arrayContaining(Object.keys(attributes)),
      );
    }
    expect(Object.keys(told[0]?.attributes ?? {})).toContain('ce-traceparent');
  });

  it.each(
    ['orderPlaced', 'orderPlacedByAttribute'].flatMap((name) =>
      (messages[name]?.examples ?? []).map((example) => ({ name, ...example })),
    ),
  )('takes the signal $payload $headers', async ({ name, payload, headers }) => {
    expect(wrongWith(messages[name]?.payload, payload)).toBeUndefined();
    expect(wrongWith(messages[name]?.headers, headers ?? {})).toBeUndefined();
    const token = await system.pubsub.signPushToken({ aud: AUDIENCE, email: SERVICE_ACCOUNT, email_verified: true });
    const data = Buffer.from(JSON.stringify(payload ?? 'anything')).toString('base64');
    const response = await fetch(`${system.urls[0]}/pubsub/push`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ message: { data, attributes: headers, messageId: '1' } }),
    });
    expect(response.status).toBe(204);
    const id = /order-\d+/.exec(JSON.stringify({ payload, headers }))?.[0] ?? '';
    expect(await system.placement(id)).toBeDefined();
  });
});

it('an availability on its topic is what is described', async () => {
  const kitchens = await startSystem({ env: { KITCHEN_TOPIC: 'kitchens' } });
  await kitchens.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await makeBusy({ pool: kitchens.pool, observe() {} }, 'club-1', { extraMinutes: 20, by: 'Anna' });
  const [message] = await until(() => {
    const published = kitchens.pubsub.published('kitchens');
    return published.length > 0 && published;
  });
  const { headers, payload } = messages['kitchenAvailability'] ?? {};
  expect(wrongWith(payload, JSON.parse(message?.data.toString() ?? ''))).toBeUndefined();
  expect(wrongWith(headers, message?.attributes)).toBeUndefined();
  expect(message?.orderingKey).toBe('club-1');
  expect(Object.keys(headers?.properties ?? {})).toEqual(
    expect.arrayContaining(Object.keys(message?.attributes ?? {})),
  );
  await kitchens.stop();
});

it('what needs a person, on its topic, is what is described', async () => {
  const told = await startSystem({ env: { ATTENTION_TOPIC: 'attention' } });
  const pos = await startPos();
  pos.behave = () => ({ status: 404 });
  await told.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  await told.placeOrder();
  const [message] = await until(() => {
    const published = told.pubsub.published('attention');
    return published.length > 0 && published;
  });
  const { headers, payload } = messages['attentionEvent'] ?? {};
  expect(wrongWith(payload, JSON.parse(message?.data.toString() ?? ''))).toBeUndefined();
  expect(wrongWith(headers, message?.attributes)).toBeUndefined();
  expect(message?.attributes).toMatchObject({ 'ce-type': 'expediter.attention.opened.v1', kind: 'held' });
  expect(message?.orderingKey).toBe('held club-1');
  await told.stop();
  await pos.stop();
});

it('a webhook in the spill is what is described', async () => {
  const keys = parseSettingsKeys(`k1:${randomBytes(32).toString('base64')}`);
  const sealed = await sealSpilled(keys, {
    id: '019aab12-0000-7000-8000-000000000000',
    locationId: 'club-1',
    integration: 'standard',
    tokenId: '019aab12-0000-4000-8000-000000000000',
    requestId: 'r',
    trace: undefined,
    receivedAt: new Date(),
    target: '/webhook/standard/club-1',
    token: 't',
    headers: {},
    body: Buffer.from('{}'),
    truncated: false,
  });
  expect(wrongWith(messages['spilledWebhook']?.payload, sealed.toString('latin1'))).toBeUndefined();
});
