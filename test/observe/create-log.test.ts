import pg from 'pg';
import { expect, it } from 'vitest';
import { createLog } from '../../src/observe/create-log.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';

function logOf(value: object): string {
  let written = '';
  createLog('trace', { write: (line: string) => void (written += line) }).error(value, 'said');
  return written;
}

it('an error of Postgres that quotes a row or a value is logged with its code only', async () => {
  const pool = new pg.Pool({ connectionString: await createDatabase() });
  const failures = await Promise.all(
    [
      `INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment) VALUES ('Ada Lovelace', 'K472', 'x', 'Ada Lovelace')`,
      `SELECT 'Ada Lovelace'::int`,
      `INSERT INTO order_contents VALUES ('Ada Lovelace', NULL)`,
    ].map((sql) =>
      pool.query(sql).then(
        () => undefined,
        (error: Error) => error,
      ),
    ),
  );
  await pool.end();
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

it('any other error is logged with its message, code and stack, and without its other fields', () => {
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

it('a request is logged only with its method, because the URL has the token', () => {
  expect(logOf({ req: { method: 'POST', url: '/webhook/x/y?token=secret' } })).not.toContain('secret');
});

it('a line has the field names of Google Cloud Logging and the level of pino', () => {
  const lines: string[] = [];
  const log = createLog('trace', { write: (line: string) => void lines.push(line) });
  log.info({ reqId: '1' }, 'told');
  log.child({ reqId: '2' }).fatal('lost');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    {
      severity: 'INFO',
      level: 30,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      message: 'told',
      reqId: '1',
    },
    { severity: 'CRITICAL', level: 60, message: 'lost', reqId: '2' },
  ]);
});
