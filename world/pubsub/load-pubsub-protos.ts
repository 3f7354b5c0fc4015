import { createRequire } from 'node:module';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';

/** Loads the two services of Pub/Sub from the client's own package, so that both sides speak the same version. */
export function loadPubsubProtos(): { publisher: ServiceDefinition; subscriber: ServiceDefinition } {
  const json: unknown = createRequire(import.meta.url)('@google-cloud/pubsub/build/protos/protos.json');
  const definition = fromJSON(json as Parameters<typeof fromJSON>[0], { longs: String, enums: String, defaults: true });
  return {
    publisher: definition['google.pubsub.v1.Publisher'] as ServiceDefinition,
    subscriber: definition['google.pubsub.v1.Subscriber'] as ServiceDefinition,
  };
}
