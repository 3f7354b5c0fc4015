import { constants } from 'node:os';

/** Turns a signal into a normal exit. Otherwise, children such as Postgres would stay, and so would compiled files. */
export function endBySignal(): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => process.exit(128 + constants.signals[name]));
  }
}
