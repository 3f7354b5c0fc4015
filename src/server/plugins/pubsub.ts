import { pubsubConnection, type PubsubConnection } from '../../pubsub/pubsub-connection.ts';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import type { Config } from '../../config/config.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Undefined without GOOGLE_CLOUD_PROJECT. */
    pubsub: PubsubConnection | undefined;
  }
}

export const pubsub = fp(
  async (app: FastifyInstance, { GOOGLE_CLOUD_PROJECT }: Pick<Config, 'GOOGLE_CLOUD_PROJECT'>) => {
    app.decorate('pubsub', GOOGLE_CLOUD_PROJECT === undefined ? undefined : pubsubConnection(GOOGLE_CLOUD_PROJECT));
  },
  { name: 'pubsub' },
);
