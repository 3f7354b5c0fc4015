import pg from 'pg';
import { onTestFinished } from 'vitest';

type Held = {
  query(sql: string): Promise<unknown>;
  /** Safe to repeat. */
  end(how?: 'COMMIT' | 'ROLLBACK'): Promise<void>;
};

/** Begins a transaction with a statement, and leaves it open until `end`, or until the test has finished. */
export async function holdOpen(databaseUrl: string, sql: string, values: unknown[] = []): Promise<Held> {
  const client = new pg.Client(databaseUrl);
  let ended: Promise<void> | undefined;
  const end: Held['end'] = (how = 'ROLLBACK') => (ended ??= client.query(how).then(() => client.end()));
  await client.connect();
  onTestFinished(() => end());
  await client.query('BEGIN');
  await client.query(sql, values);
  return { query: (more) => client.query(more), end };
}
