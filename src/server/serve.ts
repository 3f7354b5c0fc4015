import { once } from 'node:events';
import { WrongSchema } from '../database/check-schema.ts';
import { WrongEnvironment, readConfig } from '../config/config.ts';
import { createLog } from '../observe/create-log.ts';
import { logOutput } from '../observe/log-output.ts';
import { printError } from '../observe/terminal-text.ts';
import { loadProviders } from '../providers/index.ts';
import { buildServer } from './build-server.ts';

/** Ends the process with a message and no stack, because only an operator can fix the cause. */
function refuseToStart(message: string): never {
  printError(message);
  process.exit(1);
}

try {
  const config = readConfig(process.env);
  const output = logOutput((lines) =>
    log.warn({ lines }, 'log lines were dropped: the reader of the log was too slow'),
  );
  const log = createLog(config.LOG_LEVEL, output);
  const registry = await loadProviders(config.PROVIDER_MODULES);
  const stop = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  // Without this listener Node would print the whole error, and Postgres quotes values in its errors.
  const crash = new Promise<void>((resolve) => {
    process.on('uncaughtException', (err) => {
      log.fatal({ err }, 'the process ends after an uncaught error');
      process.exitCode = 1;
      resolve();
    });
  });
  const server = await buildServer(config, { registry, log, env: process.env, droppedLines: output.dropped });
  await server.listen();
  const failed = server.start().then(
    () => new Promise<never>(() => {}),
    (error: unknown) => Promise.reject(error),
  );
  await Promise.race([stop, crash, failed]);
  // guard: drain
  await server.drain();
  process.exit();
} catch (error) {
  if (error instanceof WrongEnvironment || error instanceof WrongSchema) refuseToStart(error.message);
  refuseToStart(`Expediter cannot start: ${(error as Error).message}`);
}
