import {
  PubSub,
  type CreateSubscriptionOptions,
  type Message,
  type Subscription,
  type Topic,
} from '@google-cloud/pubsub';
import { drainOf } from '../../src/pubsub/spill-topic.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import { PUSH_PATH } from '../../src/core/domain/paths.ts';
import { startPubsub, type Pubsub } from '../../world/pubsub/start-pubsub.ts';
import type { Doors } from './doors.ts';

const ORDERS = 'orders';
const STATUS = 'order-status';
const SPILL = 'webhook-spill';
const AUDIENCE = 'https://expediter.demo/pubsub/push';
const SERVICE_ACCOUNT = 'push@expediter-demo.iam.gserviceaccount.com';
const ALREADY_EXISTS = 6;
/** Options of a call. The time limit is short, because the server is on this machine or near it. */
const PATIENCE = { timeout: 5_000, retry: null };

/**
 * Opens the topics at the given emulator, else at our stand-in, which signs its pushes as Google does. An emulator may
 * be shared, so each run has its own subscriptions, and its own spill, which only this run can decrypt. `stop` deletes
 * what this run created, except the topics `orders` and `order-status`, which all runs share.
 */
export async function openPubsub(about: {
  emulatorHost: string | undefined;
  project: string;
  run: string;
  /** The stand-in's. */
  port?: number;
}): Promise<Doors> {
  const standIn = about.emulatorHost === undefined ? await startPubsub({ port: about.port ?? 0 }) : undefined;
  const host = standIn?.host ?? about.emulatorHost ?? '';
  const client = new PubSub({ projectId: about.project, apiEndpoint: host, emulatorMode: true });
  const undoing: (() => Promise<unknown>)[] = [];

  const stop = async (): Promise<void> => {
    try {
      // The stand-in loses its topics and subscriptions when it stops, so nothing needs deleting there.
      if (standIn === undefined) for (const undo of undoing.toReversed()) await undo();
    } finally {
      await client.close();
      await standIn?.stop();
    }
  };
  const ensureTopic = async (name: string): Promise<Topic> => {
    await client.createTopic(name, PATIENCE).catch((error: Error & { code?: number }) => {
      if (error.code === ALREADY_EXISTS) return;
      throw new Error(`Pub/Sub at ${host} cannot be used: ${error.message}`, { cause: error });
    });
    return client.topic(name);
  };
  const subscribe = async (
    topic: Topic,
    options: CreateSubscriptionOptions,
    name = `${shortId(topic)}-demo-${about.run}`,
  ): Promise<Subscription> => {
    const [subscription] = await topic.createSubscription(name, { ...options, gaxOpts: PATIENCE });
    undoing.push(() => subscription.delete(PATIENCE));
    return subscription;
  };

  try {
    const orders = await ensureTopic(ORDERS);
    const status = await ensureTopic(STATUS);
    const spill = await ensureTopic(`${SPILL}-${about.run}`);
    undoing.push(() => spill.delete(PATIENCE));
    await subscribe(spill, {}, drainOf(shortId(spill)));
    // For the reader of docs/connect-your-platform.md, since gcloud does not reach the stand-in.
    if (standIn !== undefined) await subscribe(status, { enableMessageOrdering: true }, 'app-orders');
    // The variables by which a client finds the status topic. Without the last one Google's client warns.
    const topic = `GOOGLE_CLOUD_PROJECT=${about.project} PUBSUB_EMULATOR_HOST=${host} METADATA_SERVER_DETECTION=none`;
    return {
      parts: [
        ['Pub/Sub', standIn === undefined ? `PUBSUB_EMULATOR_HOST, ${host}` : `stand-in, gRPC at ${host}`],
        ['Topic', `${topic}   (order-status)`],
      ],
      howToConnect: () => `Signals:        publish {"orderId": "ORDER_ID"} to the topic ${ORDERS}, with these variables
Status topic:   ${topic}
                (docs/connect-your-platform.md#5-the-topic shows how to read it)`,
      env: {
        GOOGLE_CLOUD_PROJECT: about.project,
        PUBSUB_EMULATOR_HOST: host,
        STATUS_TOPIC: STATUS,
        SPILL_TOPIC: shortId(spill),
        ...pushEnv(standIn),
      },
      signalPath: PUSH_PATH,
      async signalOrder(orderId) {
        await orders.publishMessage({ json: { orderId }, attributes: { type: 'orderPlaced', orderId } });
      },
      async sendSignalsTo(pushEndpoint) {
        const oidcToken = { serviceAccountEmail: SERVICE_ACCOUNT, audience: AUDIENCE };
        await subscribe(orders, { pushEndpoint, oidcToken });
      },
      async readStatuses(take, onError) {
        const subscription = await subscribe(status, { enableMessageOrdering: true });
        const receive = (received: Message): void => {
          received.ack();
          if (received.attributes['type'] !== 'orderStatusChanged') return;
          take(JSON.parse(received.data.toString()) as LiveMessage);
        };
        subscription.on('message', receive);
        subscription.on('error', onError);
        return async () => {
          subscription.removeListener('message', receive);
          await subscription.close();
        };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function shortId({ name }: Topic | Subscription): string {
  return name.split('/').at(-1) ?? '';
}

function pushEnv(standIn: Pubsub | undefined): Record<string, string> {
  // The official emulator does not sign its pushes.
  if (standIn === undefined) return { PUSH_AUTH: 'off' };
  return {
    PUSH_AUTH: 'oidc',
    PUSH_AUDIENCE: AUDIENCE,
    PUSH_SERVICE_ACCOUNT: SERVICE_ACCOUNT,
    PUSH_JWKS_URL: standIn.jwksUrl,
  };
}
