import pg from 'pg';

/** True if Postgres refuses the values themselves (classes 21, 22 and 23, or a limit): a retry can never succeed. */
export function isDataError(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^(21|22|23|54)/.test(error.code ?? '');
}
