import pg from 'pg';
import { countPoison, type Plan } from './choose-request.ts';

type Books = Record<'webhooks' | 'dropped' | 'history' | 'applied' | 'outbox' | 'steps', number>;

/**
 * Compares the database after a load with the answers. Every answer must be 200, and every webhook stored. All except
 * poison must be in the history. Every step of an order must be in the outbox. Unless the load is hot, each webhook
 * must be a step. @param about.steps the steps of all orders before the load
 * @param about.history the number of events before the load, none of which is `applied`
 * @param about.from the number of the first request, counted over all loads on these orders
 * @throws Error if anything is missing or too much
 */
export async function balanceBooks(
  databaseUrl: string,
  about: {
    steps: number;
    history?: number;
    from: number;
    requests: number;
    answers: Record<string, number>;
    plan: Plan;
  },
): Promise<void> {
  const { history = 0, from, requests, answers, plan } = about;
  const books = await readBooks(databaseUrl);
  const added = books.history - history;
  const isBalanced =
    answers['200'] === requests &&
    books.webhooks === requests &&
    books.dropped === countPoison(plan, from, requests) &&
    added === requests - books.dropped &&
    (plan === 'hot' || books.applied === added) &&
    books.applied === books.outbox &&
    books.applied === books.steps - about.steps;
  if (!isBalanced) throw new Error(`the books do not balance: ${JSON.stringify({ ...about, books })}`);
}

/** Empties the tables that a load fills, except orders. @returns the number of steps of all orders so far */
export async function emptyBooks(databaseUrl: string): Promise<{ steps: number }> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query('TRUNCATE status_events, parked_events, webhooks, outbox');
  await client.end();
  const { steps } = await readBooks(databaseUrl);
  return { steps };
}

async function readBooks(databaseUrl: string): Promise<Books> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query<Books>(
    `SELECT (SELECT count(*)::int FROM webhooks) AS webhooks,
            (SELECT count(*)::int FROM webhooks WHERE outcome = 'dropped') AS dropped,
            (SELECT count(*)::int FROM status_events) AS history,
            (SELECT count(*)::int FROM status_events WHERE outcome = 'applied') AS applied,
            (SELECT count(*)::int FROM outbox) AS outbox,
            (SELECT sum(sequence)::int FROM orders) AS steps`,
  );
  await client.end();
  if (rows[0] === undefined) throw new Error('Postgres answered nothing');
  return rows[0];
}
