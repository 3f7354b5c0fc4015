import pg from 'pg';
import { countPoison, type Plan } from './choose-request.ts';

type Books = Record<'webhooks' | 'dropped' | 'history' | 'applied' | 'outbox' | 'steps', number>;

/**
 * Compares the database after a load with the answers. Every answer is 200, every webhook is stored, all but poison are
 * in the history, every step of an order waits in the outbox, and unless the load is hot, each webhook was a step.
 * @param about.steps of all orders, before the load
 * @param about.history events of all orders, before the load, none of which is counted as applied
 * @param about.from the number of its first request among all about these orders
 * @throws if anything is missing or too much
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

/** Empties the tables that a load fills, except orders. @returns the steps that the orders have taken so far */
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
