import { constants } from 'node:os';

/** Makes a signal a normal exit. Only then do children such as Postgres end, and are compiled files deleted. */
export function endBySignal(): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => process.exit(128 + constants.signals[name]));
  }
}
