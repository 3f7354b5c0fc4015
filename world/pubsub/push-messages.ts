import { pacePushes } from './pace-pushes.ts';
import type { Backoff, Lease, Message, MessageQueue } from './queue-messages.ts';
import type { PushTokens } from './sign-push-tokens.ts';

/** A subscription's push configuration. */
export type PushConfig = {
  pushEndpoint: string;
  oidcToken?: { serviceAccountEmail: string; audience: string } | null;
};

export type PushSubscription = {
  /** The full name: `projects/…/subscriptions/…`. */
  name: string;
  ackDeadlineMs: number;
  /** True if dead lettering counts attempts: only then does Google send the attempt's number. */
  tellsAttempt: boolean;
  /** The waits of the whole subscription after nacks. Without it, it never slows down. */
  slowsDown: Backoff | undefined;
};

/**
 * Statuses that acknowledge. Everything else, no answer included, is a nack. Google accepts a 102 as well; for `fetch`,
 * as for HTTP, a 102 precedes the answer, so here the answer decides.
 */
const ACKNOWLEDGED = new Set([200, 201, 202, 204]);
const PUSHES_AT_ONCE = 100;

/** Pushes a queue's messages over HTTP as Google does. @returns a function that ends it, also pushes under way */
export function pushMessages(
  queue: MessageQueue,
  subscription: PushSubscription,
  config: PushConfig,
  tokens: PushTokens,
): () => void {
  const ended = new AbortController();
  const { slowsDown } = subscription;
  const pace = slowsDown && pacePushes(slowsDown, PUSHES_AT_ONCE, queue.wake);

  async function push(lease: Lease): Promise<void> {
    const began = performance.now();
    const acknowledged = await post(lease).catch(() => false);
    if (ended.signal.aborted) return;
    if (acknowledged) {
      pace?.acknowledged(performance.now() - began);
      queue.ack([lease.ackId]);
    } else {
      pace?.refused();
      queue.nack([lease.ackId]);
    }
  }

  async function post({ message, attempt }: Lease): Promise<boolean> {
    const response = await fetch(config.pushEndpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(await authorization(config, tokens)) },
      body: JSON.stringify({
        message: wrap(message),
        subscription: subscription.name,
        ...(subscription.tellsAttempt ? { deliveryAttempt: attempt } : {}),
      }),
      redirect: 'manual',
      signal: AbortSignal.any([ended.signal, AbortSignal.timeout(subscription.ackDeadlineMs)]),
    });
    await response.arrayBuffer(); // or the connection is not used again
    return ACKNOWLEDGED.has(response.status);
  }

  const detach = queue.attach({
    get maxOutstanding() {
      return pace?.window() ?? PUSHES_AT_ONCE;
    },
    oneOfAKey: true,
    // The request's own time-out decides, so the queue must not redeliver before it.
    ackDeadlineMs: subscription.ackDeadlineMs + 1000,
    receive(leases) {
      for (const lease of leases) void push(lease);
    },
  });
  return () => {
    detach();
    pace?.stop();
    ended.abort();
  };
}

async function authorization({ pushEndpoint, oidcToken }: PushConfig, tokens: PushTokens) {
  if (oidcToken === undefined || oidcToken === null) return {};
  const audience = oidcToken.audience === '' ? pushEndpoint : oidcToken.audience;
  return { authorization: `Bearer ${await tokens.tokenFor(oidcToken.serviceAccountEmail, audience)}` };
}

/** Wraps a message. Google writes two of the names in both spellings, and leaves out empty values. */
function wrap({ messageId, publishTime, data, attributes, orderingKey }: Message) {
  const time = publishTime.toISOString();
  return {
    ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
    ...(data.length === 0 ? {} : { data: data.toString('base64') }),
    messageId,
    message_id: messageId,
    ...(orderingKey === '' ? {} : { orderingKey }),
    publishTime: time,
    publish_time: time,
  };
}
