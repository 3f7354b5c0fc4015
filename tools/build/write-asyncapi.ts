import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { z } from 'zod';
import {
  ATTENTION_SCHEMA,
  KITCHEN_SCHEMA,
  KITCHEN_TYPE,
  STATUS_SCHEMA,
  STATUS_TYPE,
} from '../../src/core/domain/cloud-event.ts';
import { ATTENTION_EVENTS, ATTENTION_KINDS, AttentionEvent } from '../../src/core/domain/attention-event.ts';
import { Availability, KITCHEN_STATES } from '../../src/core/domain/availability.ts';
import { MEMBER_STATES, STATUSES } from '../../src/core/domain/lifecycle.ts';
import { LiveMessage } from '../../src/core/domain/live-message.ts';
import { Id } from '../../src/core/domain/order.ts';

type Schema = Record<string, unknown>;

/** The attributes of a CloudEvent that are the same on each topic. In Pub/Sub, all attributes are texts. */
const CloudEvent = z.object({
  'content-type': z.literal('application/json'),
  'ce-specversion': z.literal('1.0'),
  'ce-source': z.string().meta({ format: 'uri-reference', description: 'The topic, by its full name at Google.' }),
  'ce-datacontenttype': z.literal('application/json'),
});

/** The attributes of each message on the status topic. */
const LiveAttributes = CloudEvent.extend({
  type: z.literal('orderStatusChanged'),
  serviceOrderId: z.string(),
  locationId: z.string().exactOptional().meta({ description: 'Missing if the payload has none.' }),
  status: z.enum(STATUSES).exactOptional().meta({ description: 'Missing if it is null in the payload.' }),
  memberState: z.enum(MEMBER_STATES),
  sequence: z.string().regex(/^[1-9]\d*$/),
  'ce-id': z
    .string()
    .regex(/\/[1-9]\d*$/)
    .meta({ description: 'Order and sequence. A repeat has the same id.' }),
  'ce-type': z.literal(STATUS_TYPE),
  'ce-subject': z.string().exactOptional().meta({
    description: "The order's id. Missing if it has a character that CloudEvents does not allow, such as a line break.",
  }),
  'ce-time': z.string().meta({ format: 'date-time', description: 'The `appliedAt` of the payload.' }),
  'ce-dataschema': z.literal(STATUS_SCHEMA),
  'ce-sequence': z
    .string()
    .regex(/^\d{10}$/)
    .meta({ description: 'The sequence with leading zeros, so that it sorts correctly as text.' }),
  'ce-traceparent': z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
    .exactOptional()
    .meta({ description: 'The span that published it. Missing if tracing is off.' }),
});

/** The attributes of each message on the kitchen topic. */
const KitchenAttributes = CloudEvent.extend({
  type: z.literal('kitchenAvailabilityChanged'),
  locationId: z.string(),
  state: z.enum(KITCHEN_STATES),
  sequence: z.string().regex(/^[1-9]\d*$/),
  'ce-id': z
    .string()
    .regex(/\/[1-9]\d*$/)
    .meta({ description: 'Location and sequence. A repeat has the same id.' }),
  'ce-type': z.literal(KITCHEN_TYPE),
  'ce-subject': z.string().exactOptional().meta({ description: "The location's id, as on the status topic." }),
  'ce-time': z.string().meta({ format: 'date-time', description: 'When the availability changed.' }),
  'ce-dataschema': z.literal(KITCHEN_SCHEMA),
  'ce-sequence': z
    .string()
    .regex(/^\d{13}$/)
    .meta({ description: 'The sequence.' }),
});

/** The attributes of each message on the attention topic. */
const AttentionAttributes = CloudEvent.extend({
  type: z.literal('attention'),
  event: z.enum(ATTENTION_EVENTS),
  kind: z.enum(ATTENTION_KINDS),
  locationId: z.string().exactOptional(),
  sequence: z.string().regex(/^[1-9]\d*$/),
  'ce-id': z
    .string()
    .regex(/\/[1-9]\d*$/)
    .meta({ description: 'Need and sequence. A repeat has the same id.' }),
  'ce-type': z.string().regex(/^expediter\.attention\.(opened|updated|closed)\.v1$/),
  'ce-subject': z.string().exactOptional().meta({ description: "The need's id, as on the status topic." }),
  'ce-time': z.string().meta({ format: 'date-time', description: 'When the event was made.' }),
  'ce-dataschema': z.literal(ATTENTION_SCHEMA),
  'ce-sequence': z.string().regex(/^\d{13}$/),
});

/** The fields in which src/http/pubsub-push.ts looks for an order id if the message has no attribute `orderId`. */
const OrderPlaced = z
  .union([
    z.looseObject({ orderId: Id }),
    z.looseObject({ order: z.looseObject({ id: Id }) }),
    z.looseObject({ id: Id }),
  ])
  .meta({ description: 'The first of these fields that has an id counts. Nothing else is read.' });

const OrderPlacedAttributes = z.looseObject({ orderId: Id });

/** The compact serialization of a JWE: five parts. The second part, the key, may be empty. */
const SpilledWebhook = z.string().regex(/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$/);

/** The contents of docs/live-message.schema.json. */
export function liveMessageSchema(): Schema {
  const { $schema, $defs } = z.toJSONSchema(LiveMessage, { io: 'input' });
  return { $schema, $id: STATUS_SCHEMA, ...$defs?.['LiveMessage'] };
}

/** The contents of docs/kitchen-availability.schema.json. */
export function kitchenSchema(): Schema {
  const { $schema, $defs } = z.toJSONSchema(Availability, { io: 'input' });
  return { $schema, $id: KITCHEN_SCHEMA, ...$defs?.['KitchenAvailability'] };
}

/** The contents of docs/attention-event.schema.json. */
export function attentionSchema(): Schema {
  const { $schema, $defs } = z.toJSONSchema(AttentionEvent, { io: 'input' });
  return { $schema, $id: ATTENTION_SCHEMA, ...$defs?.['AttentionEvent'] };
}

/** The contents of docs/asyncapi.yaml. Topics have no settings: AsyncAPI's binding describes only schemas at Google. */
export function asyncapi(): Schema {
  const { $schema: _, ...liveMessage } = liveMessageSchema();
  const { $schema: _kitchen, ...availability } = kitchenSchema();
  const { $schema: _attention, ...attention } = attentionSchema();
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'Expediter',
      version: '1.0.0',
      description: 'The messages that the service receives from Pub/Sub and publishes to it.',
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
      kitchens: {
        ...addressOf('kitchenTopic', 'kitchen-availability', 'KITCHEN_TOPIC of the service.'),
        description:
          'Changes of the availability of kitchens. The messages of one location have its id as ordering key.',
        messages: { kitchenAvailability: { $ref: '#/components/messages/kitchenAvailability' } },
      },
      attention: {
        ...addressOf('attentionTopic', 'expediter-attention', 'ATTENTION_TOPIC of the service.'),
        description: 'What needs a person. The messages of one need have its id as ordering key.',
        messages: { attentionEvent: { $ref: '#/components/messages/attentionEvent' } },
      },
      signals: {
        ...addressOf('signalTopic', 'order-placed', "The platform's. Its push subscription calls `/pubsub/push`."),
        description: 'A new order, or a change of an order. The service fetches the order for each signal.',
        messages: {
          orderPlaced: { $ref: '#/components/messages/orderPlaced' },
          orderPlacedByAttribute: { $ref: '#/components/messages/orderPlacedByAttribute' },
        },
      },
      spill: {
        ...addressOf('spillTopic', 'webhook-spill', 'SPILL_TOPIC of the service.'),
        description: 'Webhooks that arrived while Postgres was down. Only the service reads them.',
        messages: { spilledWebhook: { $ref: '#/components/messages/spilledWebhook' } },
      },
    },
    operations: {
      tellStatus: operation('send', 'orderStatus', 'Publishes a step of an order, at least once.'),
      tellAvailability: operation('send', 'kitchens', 'Publishes the latest availability of a kitchen, at least once.'),
      tellAttention: operation('send', 'attention', 'Publishes the latest state of a need, at least once.'),
      takeSignal: operation('receive', 'signals', 'Fetches the order from the platform.'),
      spillWebhook: operation('send', 'spill', 'Stores a webhook that Postgres did not store in time.'),
      drainSpill: operation('receive', 'spill', 'Applies the webhook when Postgres is back.'),
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
        kitchenAvailability: {
          title: 'Kitchen availability',
          summary: 'Whether a kitchen takes orders now, as a CloudEvent in binary mode.',
          headers: schemaOf(KitchenAttributes),
          payload: availability,
          bindings: { googlepubsub: { orderingKey: 'locationId', bindingVersion: '0.2.0' } },
        },
        attentionEvent: {
          title: 'Attention event',
          summary: 'Something needs a person, or needs nobody any more, as a CloudEvent in binary mode.',
          headers: schemaOf(AttentionAttributes),
          payload: attention,
          bindings: { googlepubsub: { orderingKey: 'id', bindingVersion: '0.2.0' } },
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
          summary: 'An order, by its id in an attribute. The data is then ignored.',
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
  const docs = new URL('../../docs/', import.meta.url);
  const text = stringify(asyncapi(), { aliasDuplicateObjects: false, lineWidth: 0 });
  await writeFile(new URL('asyncapi.yaml', docs), `# Made by \`npm run asyncapi\` of what the code has.\n${text}`);
  await writeFile(new URL('live-message.schema.json', docs), JSON.stringify(liveMessageSchema()));
  await writeFile(new URL('kitchen-availability.schema.json', docs), JSON.stringify(kitchenSchema()));
  await writeFile(new URL('attention-event.schema.json', docs), JSON.stringify(attentionSchema()));
}
