// Feeds members' apps from the status topic: GATEWAY_URL=… GATEWAY_KEY=… node member-gateway.ts centrifugo|mercure
// docs/live-to-members.md says how to set up the gateway.
import { PubSub, type Message } from '@google-cloud/pubsub';

type Step = { serviceOrderId: string; sequence: number; [field: string]: unknown };

const { GATEWAY_URL = '', GATEWAY_KEY = '' } = process.env;
const [, , gateway = ''] = process.argv;

/** All else stays here, so that a new field of the topic does not reach members automatically. */
const FIELDS =
  'sequence status memberState fulfillment callOutCode cancellation reason reasonCode itemIds ' +
  'estimatedReadyAt estimatedDeliveryAt trackingUrl occurredAt appliedAt';
const forMember = (step: Omit<Step, 'serviceOrderId'>): Record<string, unknown> =>
  Object.fromEntries(FIELDS.split(' ').map((field) => [field, step[field]]));

async function post(path: string, request: RequestInit): Promise<string> {
  const answer = await fetch(GATEWAY_URL + path, { method: 'POST', signal: AbortSignal.timeout(10_000), ...request });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return text;
}

async function toCentrifugo({ serviceOrderId, ...step }: Step): Promise<void> {
  const publication = {
    channel: `order:${encodeURIComponent(serviceOrderId)}`,
    data: forMember(step),
    version: step.sequence, // a repeat is dropped
    idempotency_key: `${serviceOrderId}/${step.sequence}`,
  };
  const headers = { 'x-api-key': GATEWAY_KEY, 'content-type': 'application/json' };
  const answer = await post('/api/publish', { headers, body: JSON.stringify(publication) });
  const { error } = JSON.parse(answer) as { error?: { code: number; message: string } };
  if (error) throw new Error(`Centrifugo: ${error.code} ${error.message}`); // answered 200, too
}

async function toMercure({ serviceOrderId, ...step }: Step): Promise<void> {
  const id = encodeURIComponent(serviceOrderId);
  const update = {
    topic: `https://order.example.com/orders/${id}`, // of your site
    id: `urn:order:${id}:${step.sequence}`,
    type: 'orderStatusChanged',
    data: JSON.stringify(forMember(step)),
    private: 'on',
  };
  const headers = { authorization: `Bearer ${GATEWAY_KEY}` };
  await post('/.well-known/mercure', { headers, body: new URLSearchParams(update) });
}

const publish = new Map(Object.entries({ centrifugo: toCentrifugo, mercure: toMercure })).get(gateway);
if (publish === undefined) throw new Error('the gateway is centrifugo or mercure');

const receive = async (message: Message): Promise<void> => {
  try {
    await publish(JSON.parse(message.data.toString()) as Step);
    message.ack();
  } catch (error) {
    console.error(message.id, String(error));
    message.nack();
  }
};

const subscription = new PubSub().subscription('member-gateway');
subscription.on('error', (error) => console.error(error.message));
subscription.on('message', (message) => void receive(message));
