import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { hasOperators, type Config } from '../../config/config.ts';
import { startObserving, type Observing } from '../../observe/start-observing.ts';

declare module 'fastify' {
  interface FastifyInstance {
    observability: Observing;
  }
}

/** The readers of events: log, last-seen times and traffic. Metrics and traces are added when they are loaded. */
export const observability = fp(
  async (app: FastifyInstance, config: Config) => {
    const { pool, flushPool, clock } = app.database;
    const integrations = app.providers.registry.keys();
    const about = { config, isRead: hasOperators(config), log: app.log, integrations, pool, flushPool, now: clock.now };
    app.decorate('observability', startObserving(about));
  },
  { name: 'observability', dependencies: ['database', 'providers'] },
);
