import pg from 'pg';

/** Errors of the client library, which carry no code. */
const LOST =
  /^(Postgres has not told the time yet|timeout exceeded when trying to connect|Connection terminated|Client has encountered|Query read timeout)/;
const UNREACHABLE = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'];

/** True if Postgres cannot be used now, or is overloaded: the same request may succeed later. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isDatabaseAway);
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (error instanceof pg.DatabaseError) return /^(08|25006|40|53|55|57)/.test(error.code ?? '');
  return UNREACHABLE.includes(String(code)) || LOST.test(error.message) || isDatabaseAway(error.cause);
}
