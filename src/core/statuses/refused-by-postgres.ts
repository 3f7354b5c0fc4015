import type pg from 'pg';
import type { Drop } from '../domain/webhook.ts';

/** Why a webhook is dropped whose values Postgres refuses. */
export function refusedByPostgres({ code: sqlstate = '' }: pg.DatabaseError): Drop {
  return { reason: `Postgres refused what it says (${sqlstate})`, cause: { code: 'refused_by_postgres', sqlstate } };
}
