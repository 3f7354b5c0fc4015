import { constants } from 'node:os';

/** Our children, such as the service and Postgres, end with us, and compiled files are deleted at exit: a signal is one. */
export function endBySignal(): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => process.exit(128 + constants.signals[name]));
  }
}
