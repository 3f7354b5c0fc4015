/** docs/connect-your-platform.md, "The topic": its reader for Node, with what its project does in place of printing. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PubSub, type Subscription } from '@google-cloud/pubsub';
import { expect, it, onTestFinished, vi } from 'vitest';
import { until } from '../../world/processes/until.ts';
import { startPubsub } from '../../world/pubsub/start-pubsub.ts';
import { link } from '../support/pack-package.ts';
import { read } from '../support/read-project.ts';

it('applies a repeat after an error, and waits for each step of an order before it begins the next', async () => {
  vi.spyOn(console, 'error').mockReturnValue();
  const pubsub = await startPubsub();
  const client = new PubSub({ projectId: 'reader', apiEndpoint: pubsub.host, emulatorMode: true });
  const [topic] = await client.createTopic('order-status');
  await topic.createSubscription('app-orders', { enableMessageOrdering: true });

  const done: string[] = [];
  let hasFailed = false;
  vi.stubGlobal('applyStep', async (order: string, state: string) => {
    done.push(`${order} begins ${state}`);
    // Another order does not wait.
    if (state === 'placed') await until(() => done.includes('b ends sent'));
    if (state === 'picked_up' && !hasFailed) {
      hasFailed = true;
      throw new Error('the database is away');
    }
    done.push(`${order} ends ${state}`);
  });
  const [, text = ''] = /^### TypeScript$.*?```ts\n(.*?)```/ms.exec(read('docs/connect-your-platform.md')) ?? [];
  const reader = text
    .replace('new PubSub()', `new PubSub(${JSON.stringify({ projectId: 'reader', apiEndpoint: pubsub.host })})`)
    .replace('console.log(', 'await applyStep(');
  const folder = await mkdtemp(join(tmpdir(), 'reader-'));
  link(folder, ['@google-cloud/pubsub']);
  await writeFile(join(folder, 'reader.mts'), `${reader}\nexport { subscription, queues };`);
  vi.stubEnv('PUBSUB_EMULATOR_HOST', pubsub.host);
  const { subscription, queues } = (await import(join(folder, 'reader.mts'))) as {
    subscription: Subscription;
    queues: Map<string, unknown>;
  };
  onTestFinished(async () => {
    await subscription.close();
    await client.close();
    await pubsub.stop();
    await rm(folder, { recursive: true });
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });

  const ordered = client.topic('order-status', { messageOrdering: true });
  const publish = (serviceOrderId: string, sequence: number, memberState: string): Promise<string> =>
    ordered.publishMessage({ json: { serviceOrderId, sequence, memberState }, orderingKey: serviceOrderId });
  await Promise.all([publish('a', 1, 'placed'), publish('a', 2, 'sent'), publish('b', 1, 'sent')]);
  await publish('a', 3, 'picked_up');
  await publish('a', 2, 'sent');
  await until(() => done.includes('a ends picked_up') && queues.size === 0);
  expect(done.filter((each) => each.startsWith('a'))).toEqual([
    'a begins placed',
    'a ends placed',
    'a begins sent',
    'a ends sent',
    'a begins picked_up',
    'a begins picked_up',
    'a ends picked_up',
  ]);
});
