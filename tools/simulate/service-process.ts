/** A process of the service: all of it but the sockets, as one party. */
import type { FastifyBaseLogger } from 'fastify';
import type { Server } from '../../src/server/build-server.ts';
import type { Answer, Endpoint } from './network.ts';
import type { Code } from './load-code.ts';
import { openStream } from './open-stream.ts';
import { asParty, asSimulator, newParty, theSchedule, type Party } from './schedule.ts';

export type ServiceProcess = {
  readonly party: Party;
  readonly endpoint: Endpoint;
  isReady(): boolean;
};

/** Starts a process. Resolves when its server is built; then it starts in virtual time. */
export async function startProcess(
  name: string,
  { buildServer, readConfig, registry }: Code,
  environment: Readonly<Record<string, string>>,
  onEnd: (error: unknown) => void,
): Promise<ServiceProcess> {
  const party = newParty(name);
  let server: Server | undefined;
  let isReady = false;
  await asParty(party, async () => {
    server = await buildServer(readConfig(environment), { registry, log: logOf(party), env: {} });
    await server.app.ready();
  });
  theSchedule().after(0, party, () => {
    void server?.start().then(
      () => {
        isReady = true;
      },
      (error: unknown) => onEnd(error),
    );
  });
  return {
    party,
    isReady: () => isReady,
    endpoint: {
      party,
      async answer(request): Promise<Answer | 'cut'> {
        if (server === undefined) return 'cut';
        const { method, url, headers, body } = request;
        if (url.pathname === '/follow') return openStream(server.app.server, request);
        const answer = await server.app.inject({
          method: method as 'POST',
          url: `${url.pathname}${url.search}`,
          headers,
          payload: body,
        });
        const { statusCode: status, rawPayload } = answer;
        return { status, headers: { 'content-type': answer.headers['content-type'] ?? '' }, body: rawPayload };
      },
    },
  };
}

/** A log whose lines are a part of the history. */
function logOf(party: Party): FastifyBaseLogger {
  const write =
    (level: string) =>
    (about: unknown, message?: string): void => {
      const { text, fields } =
        typeof about === 'string' ? { text: about, fields: {} } : { text: message, fields: about };
      asSimulator(() => theSchedule().note(`${party.name} ${level} ${text ?? ''} ${fieldsOf(fields as object)}`));
    };
  const log = {
    level: 'info',
    fatal: write('fatal'),
    error: write('error'),
    warn: write('warn'),
    info: write('info'),
    debug: () => {},
    trace: () => {},
    silent: () => {},
    child: () => log,
  };
  return log;
}

function fieldsOf(fields: object): string {
  return JSON.stringify(fields, (_, value: unknown) => {
    if (!(value instanceof Error)) return value;
    const { cause } = value;
    return cause instanceof Error ? `${value.message} (${cause.message})` : value.message;
  });
}
