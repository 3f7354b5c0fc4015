/**
 * Completes the Pub/Sub emulator: creates the topics and subscriptions of set-up.sh, and pushes the signals to the
 * service with a signed token, as Google does. The emulator does not sign its pushes, and the service accepts no other
 * ones. The emulator forgets everything when it stops, and then this program creates everything again.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { PubSub, type Message, type Subscription } from '@google-cloud/pubsub';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

const ORDER_TOPIC = 'order-placed';
const SUBSCRIPTION = 'expediter-orders';
const ALREADY_EXISTS = 6;
const CALL = { timeout: 5_000, retry: null };
const PUSH_MS = 60_000;
const TOKEN_S = 300;
/** The wait before a refused signal is delivered again, and before the emulator is tried again. */
const PAUSE_MS = 1_000;
const ACKNOWLEDGED = new Set([200, 201, 202, 204]);

const project = required('GOOGLE_CLOUD_PROJECT');
const pushUrl = required('PUSH_URL');
const audience = required('PUSH_AUDIENCE');
const email = required('PUSH_SERVICE_ACCOUNT');
const spillTopic = process.env['SPILL_TOPIC'];
/** The topics of the service. An empty variable counts as unset. */
const published = ['STATUS_TOPIC', 'KITCHEN_TOPIC', 'ATTENTION_TOPIC', 'SPILL_TOPIC'].flatMap(
  (name) => process.env[name] || [],
);

const kid = crypto.randomUUID();
const { privateKey, publicKey } = await generateKeyPair('RS256');
const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' }] });
let complete = false;
// The keys for PUSH_JWKS_URL. They are also the health check: 503 while something is missing on the emulator.
const server = createServer((_request, response) => {
  response.writeHead(complete ? 200 : 503, { 'content-type': 'application/json' }).end(keys);
});
server.listen(Number(process.env['PORT'] || 8086));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));

for (;;) {
  const client = new PubSub({ projectId: project, apiEndpoint: required('PUBSUB_EMULATOR_HOST'), emulatorMode: true });
  try {
    const signals = await createAll(client);
    complete = true;
    console.log('the topics and subscriptions exist');
    signals.on('message', (message: Message) => void deliver(message));
    const [error] = (await once(signals, 'error')) as [Error];
    throw error;
  } catch (error) {
    complete = false;
    console.error(`the emulator cannot be used: ${(error as Error).message}`);
  }
  await client.close().catch(() => {});
  await sleep(PAUSE_MS);
}

/** @returns the subscription of the signals */
async function createAll(client: PubSub): Promise<Subscription> {
  for (const topic of [ORDER_TOPIC, ...published]) await client.createTopic(topic, CALL).catch(unlessExists);
  const subscribe = (topic: string, name: string): Promise<unknown> =>
    client.topic(topic).createSubscription(name, { ackDeadlineSeconds: 60, gaxOpts: CALL }).catch(unlessExists);
  await subscribe(ORDER_TOPIC, SUBSCRIPTION);
  if (spillTopic) await subscribe(spillTopic, `${spillTopic}-drain`);
  return client.subscription(SUBSCRIPTION, { flowControl: { maxMessages: 50 } });
}

function unlessExists(error: Error & { code?: number }): void {
  if (error.code !== ALREADY_EXISTS) throw error;
}

async function deliver(message: Message): Promise<void> {
  const status = await push(message).catch((error: Error) => error.message);
  if (typeof status === 'number' && ACKNOWLEDGED.has(status)) {
    message.ack();
    return;
  }
  console.error(`the signal ${message.id} was not accepted, and is pushed again: ${status}`);
  await sleep(PAUSE_MS);
  message.nack();
}

/** @returns the HTTP status */
async function push({ id, data, attributes }: Message): Promise<number> {
  const token = await new SignJWT({ email, email_verified: true })
    .setProtectedHeader({ alg: 'RS256', kid, typ: 'JWT' })
    .setIssuer('https://accounts.google.com')
    .setSubject(email)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime(`${TOKEN_S}s`)
    .sign(privateKey);
  const response = await fetch(pushUrl, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      message: { messageId: id, data: data.toString('base64'), attributes },
      subscription: `projects/${project}/subscriptions/${SUBSCRIPTION}`,
    }),
    signal: AbortSignal.timeout(PUSH_MS),
  });
  await response.arrayBuffer();
  return response.status;
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is required`);
  return value;
}
