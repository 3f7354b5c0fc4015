import type { FastifyInstance } from 'fastify';
import { buildApp, type AppDeps } from './app.ts';
import type { Config } from './config.ts';

export type Listeners = {
  app: FastifyInstance;
  /** The same one while OPERATOR_PORT is unset, or PORT's. */
  operatorApp: FastifyInstance;
  /** Resolves once the requests under way are answered. */
  close(): Promise<void>;
  cutOff(): void;
};

/** Opens the doors: all at one port, or those of operators at OPERATOR_PORT, which then has no other. */
export async function listen(
  config: Pick<Config, 'HOST' | 'PORT' | 'OPERATOR_HOST' | 'OPERATOR_PORT'>,
  deps: AppDeps,
): Promise<Listeners> {
  const { HOST: host, PORT: port, OPERATOR_HOST, OPERATOR_PORT } = config;
  const isApart = OPERATOR_PORT !== undefined && (OPERATOR_PORT === 0 || OPERATOR_PORT !== port);
  const app = buildApp(isApart ? { ...deps, operator: undefined } : deps);
  const operatorApp = isApart ? buildApp({ ...deps, outside: undefined }) : app;
  const opening = [app.listen({ host, port })];
  if (isApart) {
    const listenTextResolver = (address: string): string => `Operators are served at ${address}`;
    opening.push(operatorApp.listen({ host: OPERATOR_HOST ?? host, port: OPERATOR_PORT, listenTextResolver }));
  }
  await Promise.all(opening);
  const apps = new Set([app, operatorApp]);
  return {
    app,
    operatorApp,
    async close() {
      await Promise.all([...apps].map((each) => each.close()));
    },
    cutOff() {
      for (const each of apps) each.server.closeAllConnections();
    },
  };
}
