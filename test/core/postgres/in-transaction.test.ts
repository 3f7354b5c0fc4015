import pg from 'pg';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { inTransaction } from '../../../src/core/postgres/transactions.ts';
import { testPool } from '../../support/test-pool.ts';

const pool = testPool({ max: 1 });

beforeAll(async () => {
  // One connection: what is wrong with it meets the next one who asks.
  pool.on('error', () => {});
  await pool.query('CREATE TABLE written (note text PRIMARY KEY)');
});

const write = (client: pg.ClientBase, note: string): Promise<unknown> =>
  client.query('INSERT INTO written VALUES ($1)', [note]);
const notes = async (): Promise<string[]> =>
  (await pool.query<{ note: string }>('SELECT note FROM written ORDER BY 1')).rows.map((row) => row.note);
const inATransaction = async (): Promise<boolean> => {
  const { rows } = await pool.query<{ fresh: boolean }>('SELECT now() = statement_timestamp() AS fresh');
  return rows[0]?.fresh === false;
};

describe('a transaction', () => {
  it('commits all its writes or none', async () => {
    await inTransaction(pool, (client) => write(client, 'kept'));
    const failed = inTransaction(pool, async (client) => {
      await write(client, 'lost');
      throw new Error('on second thought');
    });
    await expect(failed).rejects.toThrow('on second thought');
    await expect(inTransaction(pool, (client) => write(client, 'kept'))).rejects.toMatchObject({ code: '23505' });
    expect(await notes()).toEqual(['kept']);
    expect(await inATransaction()).toBe(false);
  });

  it('whose connection dies does not harm the next transaction', async () => {
    const died = inTransaction(pool, (client) => client.query('SELECT pg_terminate_backend(pg_backend_pid())'));
    await expect(died).rejects.toThrow();
    await inTransaction(pool, (client) => write(client, 'next'));
    expect(await notes()).toEqual(['kept', 'next']);
  });

  it('that cannot be rolled back closes its connection', async () => {
    const stuck = inTransaction(pool, async (client) => {
      await write(client, 'never');
      vi.spyOn(client, 'query').mockRejectedValue(new Error('Query read timeout'));
      throw new pg.DatabaseError('as Postgres would say', 0, 'error');
    });
    await expect(stuck).rejects.toThrow('could not be rolled back');
    expect(await inATransaction()).toBe(false);
    expect(await notes()).not.toContain('never');
  });
});
