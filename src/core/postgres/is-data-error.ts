import pg from 'pg';

/** Postgres refuses the values themselves (classes 21, 22 and 23, or over some limit): the same will never pass. */
export function isDataError(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^(21|22|23|54)/.test(error.code ?? '');
}
