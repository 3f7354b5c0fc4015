import type { protos } from '@google-cloud/pubsub';
import { loadPubsub } from './load-pubsub.ts';

/** A message as Pub/Sub delivered it. */
export type PastMessage = { publishedAt: Date; attributes: Record<string, string>; data: Buffer };

const AT_ONCE = 1_000;
/** Seconds for which Pub/Sub does not deliver a message again: long enough to read all others. */
const LEASE_S = 600;
const PEEK_MS = 2_000;
const DEADLINE_EXCEEDED = 4;

/**
 * Reads all messages of a time from a pull subscription, which must have stored them. They are not acknowledged, so they
 * can be read again.
 * @param about.quietMs the subscription counts as read when it has delivered none of them for so long
 */
export async function readSince(
  { project, subscription, quietMs }: { project: string; subscription: string; quietMs: number },
  { since, until }: { since: Date; until: Date },
): Promise<PastMessage[]> {
  const read = new Map<string, PastMessage>();
  await withSubscription(project, subscription, async ({ seek, pull, lease }) => {
    const ackIds: string[] = [];
    await seek(since);
    for (let quietSince = performance.now(); performance.now() - quietSince < quietMs;) {
      const received = await pull(AT_ONCE, Math.max(quietMs - (performance.now() - quietSince), 100));
      if (received.length === 0) continue;
      const ids = received.flatMap(({ ackId }) => ackId ?? []);
      await lease(ids, LEASE_S);
      ackIds.push(...ids);
      for (const { message } of received) {
        const { messageId, publishTime, attributes, data } = message ?? {};
        const publishedAt = new Date(Number(publishTime?.seconds ?? 0) * 1_000 + (publishTime?.nanos ?? 0) / 1e6);
        // Messages do not come in order, and others are published meanwhile.
        if (publishedAt < since || publishedAt >= until || read.has(messageId ?? '')) continue;
        read.set(messageId ?? '', { publishedAt, attributes: attributes ?? {}, data: Buffer.from(data ?? '') });
        quietSince = performance.now();
      }
    }
    while (ackIds.length > 0) await lease(ackIds.splice(0, AT_ONCE), 0);
  });
  return [...read.values()].toSorted((one, other) => one.publishedAt.getTime() - other.publishedAt.getTime());
}

/** Returns whether a pull subscription has a message that nobody has received. The message is put back. */
export async function hasWaiting(project: string, subscription: string): Promise<boolean> {
  return withSubscription(project, subscription, async ({ pull, lease }) => {
    const ids = (await pull(1, PEEK_MS)).flatMap(({ ackId }) => ackId ?? []);
    if (ids.length > 0) await lease(ids, 0);
    return ids.length > 0;
  });
}

type Received = protos.google.pubsub.v1.IReceivedMessage;
type Calls = {
  seek(to: Date): Promise<unknown>;
  /** @returns no message if none came in time */
  pull(maxMessages: number, timeout: number): Promise<Received[]>;
  /** Zero seconds put the messages back. */
  lease(ackIds: string[], seconds: number): Promise<unknown>;
};

async function withSubscription<Result>(
  project: string,
  name: string,
  work: (calls: Calls) => Promise<Result>,
): Promise<Result> {
  const { PubSub, v1 } = await loadPubsub();
  const pubsub = new PubSub({ projectId: project });
  // This fails early without credentials. The call itself would print a stack to standard error.
  if (!pubsub.isEmulator) await pubsub.auth.getClient();
  const subscriber = new v1.SubscriberClient({ ...(await pubsub.getClientConfig()) });
  const subscription = `projects/${project}/subscriptions/${name}`;
  try {
    return await work({
      seek: (to) => pubsub.subscription(name).seek(to),
      lease: (ackIds, ackDeadlineSeconds) => subscriber.modifyAckDeadline({ subscription, ackIds, ackDeadlineSeconds }),
      async pull(maxMessages, timeout) {
        try {
          const [{ receivedMessages }] = await subscriber.pull({ subscription, maxMessages }, { timeout, retry: null });
          return receivedMessages ?? [];
        } catch (error) {
          if ((error as { code?: number }).code === DEADLINE_EXCEEDED) return [];
          throw error;
        }
      },
    });
  } finally {
    await Promise.all([subscriber.close(), pubsub.close()]);
  }
}
