import pg from 'pg';
import { expect, it } from 'vitest';
import { createLog } from '../src/create-log.ts';
import { createDatabase } from './support/create-database.ts';

function logOf(value: object): string {
  let written = '';
  createLog('trace', { write: (line: string) => void (written += line) }).error(value, 'said');
  return written;
}

it('an error of Postgres that quotes a row or a value is logged by its code, without them', async () => {
  const client = new pg.Client(await createDatabase());
  await client.connect();
  const failures = await Promise.all(
    [
      `INSERT INTO orders (service_order_id, location_id, fulfillment) VALUES ('Ada Lovelace', 'x', 'Ada Lovelace')`,
      `SELECT 'Ada Lovelace'::int`,
      `INSERT INTO order_contents VALUES ('Ada Lovelace', NULL)`,
    ].map((sql) =>
      client.query(sql).then(
        () => undefined,
        (error: Error) => error,
      ),
    ),
  );
  await client.end();
  for (const error of failures) {
    expect(error).toBeInstanceOf(pg.DatabaseError);
    const line = logOf({ err: error });
    expect(line).toMatch(/"code":"2[23]/);
    expect(line).not.toContain('Ada');
    const wrapped = logOf({ err: new Error('could not be committed', { cause: error }) });
    expect(wrapped).toContain('could not be committed');
    expect(wrapped).not.toContain('Ada');
  }
});

it('an error of another kind is logged with its message, code and stack, and whatever else it carries is not', () => {
  const error = Object.assign(new Error('no route'), { code: 'ECONNREFUSED', request: { headers: 'secret' } });
  const line = JSON.parse(logOf({ err: error })) as { err: Record<string, unknown> };
  expect(line.err).toMatchObject({
    type: 'Error',
    message: 'no route',
    code: 'ECONNREFUSED',
    stack: expect.stringContaining('no route'),
  });
  expect(line.err).not.toHaveProperty('request');
});

it('a request is logged by its method alone: its URL holds the token', () => {
  expect(logOf({ req: { method: 'POST', url: '/webhook/x/y?token=secret' } })).not.toContain('secret');
});
