import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import type { PubsubConnection } from '../../src/pubsub/pubsub-connection.ts';
import { gatherMessages } from '../../src/pubsub/gather-messages.ts';

it('messages are sent in one request, and one by one if Pub/Sub refuses that request', async () => {
  const requests: string[][] = [];
  const publish = async ({ messages }: { messages: { data: Buffer }[] }): Promise<[object]> => {
    const texts = messages.map(({ data }) => data.toString());
    requests.push(texts);
    if (texts.includes('bad')) throw Object.assign(new Error('refused'), { code: status.INVALID_ARGUMENT });
    return [{}];
  };
  const client = async () => ({ pubsub: { topic: (name: string) => ({ name }) }, publisher: { publish } });
  const connection = { client } as unknown as PubsubConnection;
  const send = gatherMessages(connection, { topic: 'spill', gatherMs: 1, timeoutMs: 1_000 });
  const ends = await Promise.allSettled(['one', 'bad', 'two'].map((text) => send(Buffer.from(text))));
  expect(ends.map((end) => end.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(requests).toEqual([['one', 'bad', 'two'], ['one'], ['bad'], ['two']]);
});
