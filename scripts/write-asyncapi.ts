import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { z } from 'zod';
import { DATA_SCHEMA, EVENT_TYPE } from '../src/server/pubsub/status-topic.ts';
import { MEMBER_STATES, STATUSES } from '../src/core/domain/lifecycle.ts';
import { LiveMessage } from '../src/core/domain/live-message.ts';
import { Id } from '../src/core/domain/order.ts';

type Schema = Record<string, unknown>;

/** What each message on the status topic has beside its payload. Pub/Sub knows texts alone. */
const LiveAttributes = z.object({
  type: z.literal('orderStatusChanged'),
  serviceOrderId: z.string(),
  locationId: z.string().exactOptional().meta({ description: 'Missing where the payload has none.' }),
  status: z.enum(STATUSES).exactOptional().meta({ description: 'Missing where it is null in the payload.' }),
  memberState: z.enum(MEMBER_STATES),
  sequence: z.string().regex(/^[1-9]\d*$/),
  'content-type': z.literal('application/json'),
  'ce-specversion': z.literal('1.0'),
  'ce-id': z
    .string()
    .regex(/\/[1-9]\d*$/)
    .meta({ description: 'Order and sequence: the same in a repeat.' }),
  'ce-source': z.string().meta({ format: 'uri-reference', description: 'The topic, by its full name at Google.' }),
  'ce-type': z.literal(EVENT_TYPE),
  'ce-subject': z.string().exactOptional().meta({
    description: "The order's id. Missing where that holds what CloudEvents allows in no text, such as a line break.",
  }),
  'ce-time': z.string().meta({ format: 'date-time', description: 'The `appliedAt` of the payload.' }),
  'ce-datacontenttype': z.literal('application/json'),
  'ce-dataschema': z.literal(DATA_SCHEMA),
  'ce-sequence': z
    .string()
    .regex(/^\d{10}$/)
    .meta({ description: 'The sequence, with zeros in front: as text it sorts as numbers do.' }),
  'ce-traceparent': z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
    .exactOptional()
    .meta({ description: 'The span that published it. Missing where the service traces nothing.' }),
});

/** Where the door looks for an id (src/http/signal-order-id.ts), beside the attribute. */
const OrderPlaced = z
  .union([
    z.looseObject({ orderId: Id }),
    z.looseObject({ order: z.looseObject({ id: Id }) }),
    z.looseObject({ id: Id }),
  ])
  .meta({ description: 'The first of these that is an id counts. Nothing else is read.' });

const OrderPlacedAttributes = z.looseObject({ orderId: Id });

/** Compact serialization of an encrypted JWE: five parts, of which the second, the key, may be empty. */
const SpilledWebhook = z.string().regex(/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$/);

/** docs/live-message.schema.json. */
export function liveMessageSchema(): Schema {
  const { $schema, $defs } = z.toJSONSchema(LiveMessage, { io: 'input' });
  return { $schema, $id: DATA_SCHEMA, ...$defs?.['LiveMessage'] };
}

/** docs/asyncapi.yaml. Topics' settings are no part of it: the binding for a channel is about schemas kept at Google. */
export function asyncapi(): Schema {
  const { $schema: _, ...liveMessage } = liveMessageSchema();
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'Expediter',
      version: '1.0.0',
      description: 'What the service takes from Pub/Sub, and what it tells there.',
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    servers: { google: { host: 'pubsub.googleapis.com', protocol: 'googlepubsub' } },
    channels: {
      orderStatus: {
        ...addressOf('statusTopic', 'order-status', 'STATUS_TOPIC of the service.'),
        description: 'Every step of every order. The messages of one order have its id as ordering key.',
        messages: { liveMessage: { $ref: '#/components/messages/liveMessage' } },
      },
      signals: {
        ...addressOf('signalTopic', 'order-placed', "The platform's. A push subscription leads to `/pubsub/push`."),
        description: 'That there is an order, or that it should be looked at again: each signal has it fetched.',
        messages: {
          orderPlaced: { $ref: '#/components/messages/orderPlaced' },
          orderPlacedByAttribute: { $ref: '#/components/messages/orderPlacedByAttribute' },
        },
      },
      spill: {
        ...addressOf('spillTopic', 'webhook-spill', 'SPILL_TOPIC of the service.'),
        description: 'Webhooks that came while Postgres was away. The service alone reads them.',
        messages: { spilledWebhook: { $ref: '#/components/messages/spilledWebhook' } },
      },
    },
    operations: {
      tellStatus: operation('send', 'orderStatus', 'Tells a step of an order, at least once.'),
      takeSignal: operation('receive', 'signals', 'Fetches the order from the platform.'),
      spillWebhook: operation('send', 'spill', 'Keeps a webhook that Postgres did not take in time.'),
      drainSpill: operation('receive', 'spill', 'Applies it once Postgres is back.'),
    },
    components: {
      messages: {
        liveMessage: {
          title: 'Live message',
          summary: 'One step of an order, as a CloudEvent in binary mode.',
          headers: schemaOf(LiveAttributes),
          payload: liveMessage,
          bindings: { googlepubsub: { orderingKey: 'serviceOrderId', bindingVersion: '0.2.0' } },
        },
        orderPlaced: {
          title: 'Signal',
          summary: 'An order, by its id in the data.',
          payload: { $id: 'urn:expediter:order-placed:v1', ...schemaOf(OrderPlaced) },
          examples: [
            { payload: { orderId: 'order-4711' } },
            { payload: { order: { id: 'order-4712' } } },
            { payload: { id: 'order-4713' } },
          ],
        },
        orderPlacedByAttribute: {
          title: 'Signal by an attribute',
          summary: 'An order, by its id in an attribute. It counts before the data, which may be anything.',
          headers: schemaOf(OrderPlacedAttributes),
          examples: [{ headers: { orderId: 'order-4714' } }],
        },
        spilledWebhook: {
          title: 'Spilled webhook',
          summary: 'A webhook, encrypted with a key of SETTINGS_KEY. It has no attributes.',
          contentType: 'application/jose',
          payload: { $id: 'urn:expediter:spilled-webhook:v1', ...schemaOf(SpilledWebhook) },
        },
      },
    },
  };
}

function schemaOf(shape: z.ZodType): Schema {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io: 'input' });
  return schema;
}

function addressOf(parameter: string, byDefault: string, description: string): Schema {
  return { address: `{${parameter}}`, parameters: { [parameter]: { default: byDefault, description } } };
}

function operation(action: 'send' | 'receive', channel: string, summary: string): Schema {
  return { action, channel: { $ref: `#/channels/${channel}` }, summary };
}

if (import.meta.main) {
  const docs = new URL('../docs/', import.meta.url);
  const text = stringify(asyncapi(), { aliasDuplicateObjects: false, lineWidth: 0 });
  await writeFile(new URL('asyncapi.yaml', docs), `# Made by \`npm run asyncapi\` of what the code has.\n${text}`);
  await writeFile(new URL('live-message.schema.json', docs), JSON.stringify(liveMessageSchema()));
}
