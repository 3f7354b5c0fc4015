import { PubSub } from '@google-cloud/pubsub';
import { onTestFinished } from 'vitest';
import { startPubsub, type Pubsub } from '../../world/pubsub/start-pubsub.ts';
import { serveHttp, type HttpServer } from '../../world/network/serve-http.ts';

/** Starts a stand-in, with the unmodified client. */
export async function connectPubsub(
  options: Parameters<typeof startPubsub>[0],
): Promise<{ pubsub: Pubsub; client: PubSub; stop(): Promise<void> }> {
  const pubsub = await startPubsub(options);
  const client = new PubSub({ projectId: 'test', apiEndpoint: pubsub.host, emulatorMode: true });
  return {
    pubsub,
    client,
    async stop() {
      await client.close();
      await pubsub.stop();
    },
  };
}

/** Serves where messages are pushed to, until the test ends. */
export async function serveEndpoint(handle: Parameters<typeof serveHttp>[0]): Promise<HttpServer> {
  const endpoint = await serveHttp(handle);
  onTestFinished(() => endpoint.stop());
  return endpoint;
}
