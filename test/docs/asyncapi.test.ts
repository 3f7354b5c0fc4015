/** docs/asyncapi.yaml: made of the code, right by AsyncAPI's own rules, and true at the doors and on the topics. */
import { randomBytes } from 'node:crypto';
import { Parser } from '@asyncapi/parser';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { makeBusy } from '../../src/core/kitchens/settle-kitchens.ts';
import { sealSpilled } from '../../src/core/spill/spill-webhook.ts';
import { asyncapi, attentionSchema, kitchenSchema } from '../../tools/build/write-asyncapi.ts';
import { startPos } from '../../world/pos/start-pos.ts';
import type { Pubsub } from '../../world/pubsub/start-pubsub.ts';
import {
  AUDIENCE,
  SERVICE_ACCOUNT,
  post,
  startSystem,
  statusWebhook,
  type System,
} from '../../world/system/start-system.ts';
import { read } from '../support/read-project.ts';

const text = read('docs/asyncapi.yaml');
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

it('docs/asyncapi.yaml equals what the code generates', () => {
  // Where it is not: npm run asyncapi
  expect(parse(text)).toEqual(asyncapi());
  expect(JSON.parse(read('docs/kitchen-availability.schema.json'))).toEqual(kitchenSchema());
  expect(JSON.parse(read('docs/attention-event.schema.json'))).toEqual(attentionSchema());
});

it("docs/asyncapi.yaml is valid for AsyncAPI's own parser", async () => {
  const { document, diagnostics } = await new Parser().parse(text);
  expect(diagnostics).toEqual([]);
  expect(document?.channels().all()).toHaveLength(5);

  const broken = text.replace("$ref: '#/channels/orderStatus'", "$ref: '#/channels/elsewhere'");
  expect((await new Parser().parse(broken)).document).toBeUndefined();
});

describe('the service', () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      stepped: ['placements', 'relay', 'kitchens', 'attention'],
      env: {
        // Spans go nowhere, and are named all the same.
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
        KITCHEN_TOPIC: 'kitchens',
        ATTENTION_TOPIC: 'attention',
      },
    });
    await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  });
  afterAll(() => system?.stop());

  it('publishes live messages as documented, without any other attribute', async () => {
    await system.seedOrder({ serviceOrderId: 'told', locationId: 'club-1' });
    await system.placeOrder({ serviceOrderId: 'placed', locationId: 'club-1' });
    const status = statusWebhook({ serviceOrderId: 'told', status: 'CANCELLED', reason: 'the oven is cold' });
    await post(await system.webhookUrl('club-1'), status);
    await system.finish('placements');
    await system.finish('relay');
    const told = system.pubsub.published('order-status');
    expect(new Set(told.map(({ orderingKey }) => orderingKey))).toEqual(new Set(['told', 'placed']));
    for (const message of told) expectDescribed(message, 'liveMessage');
    expect(Object.keys(told[0]?.attributes ?? {})).toContain('ce-traceparent');
  });

  it.each(
    ['orderPlaced', 'orderPlacedByAttribute'].flatMap((name) =>
      (messages[name]?.examples ?? []).map((example) => ({
        name,
        shown: example.payload ?? example.headers,
        ...example,
      })),
    ),
  )('accepts the documented example of $name: $shown', async ({ name, payload, headers }) => {
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

  it('publishes the availability of a kitchen as documented', async () => {
    await makeBusy({ pool: system.pool, observe() {} }, 'club-1', { extraMinutes: 20, by: 'Anna' });
    await system.round('availability of kitchens');
    await system.finish('kitchens');
    const [message] = system.pubsub.published('kitchens');
    expectDescribed(message, 'kitchenAvailability');
    expect(message?.orderingKey).toBe('club-1');
  });

  it('publishes as documented that an order needs an operator', async () => {
    const pos = await startPos();
    onTestFinished(() => pos.stop());
    pos.behave = () => ({ status: 404 });
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
    await system.placeOrder();
    await system.finish('placements');
    await system.round('recording of attention');
    await system.finish('attention');
    const [message] = system.pubsub.published('attention');
    expectDescribed(message, 'attentionEvent');
    expect(message?.attributes).toMatchObject({ 'ce-type': 'expediter.attention.opened.v1', kind: 'held' });
    expect(message?.orderingKey).toBe('held club-1');
  });

  /** Holds a message to its description. */
  function expectDescribed(message: ReturnType<Pubsub['published']>[number] | undefined, name: string): void {
    const { headers, payload } = messages[name] ?? {};
    expect(wrongWith(payload, JSON.parse(message?.data.toString() ?? ''))).toBeUndefined();
    expect(wrongWith(headers, message?.attributes)).toBeUndefined();
    expect(Object.keys(headers?.properties ?? {})).toEqual(
      expect.arrayContaining(Object.keys(message?.attributes ?? {})),
    );
  }
});

it('a webhook in the spill has the documented format', async () => {
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
