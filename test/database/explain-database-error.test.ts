import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it } from 'vitest';
import { explainDatabaseError } from '../../src/database/explain-database-error.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { freePort } from '../../world/network/free-port.ts';
import { queryOnce } from '../support/query-once.ts';

async function failureAt(url: string): Promise<unknown> {
  let client: pg.Client;
  try {
    client = new pg.Client(url);
    await client.connect();
  } catch (error) {
    return error;
  }
  await client.end();
  throw new Error('it can be connected to');
}

it('the advice for ECONNREFUSED is to start Postgres or to correct host and port', async () => {
  const port = await freePort();
  const { found, toDo } = explainDatabaseError(await failureAt(`postgres://x:hunter2@localhost:${port}/x`));
  expect(found).toMatch(/^connect ECONNREFUSED \S+(, connect ECONNREFUSED \S+)?$/);
  expect(toDo).toBe('start Postgres, or correct host and port in DATABASE_URL');
});

it('the explanation names a missing database or role', async () => {
  const url = new URL(await createDatabase());
  const withPart = (part: object): string => Object.assign(new URL(url), part).href;
  expect(explainDatabaseError(await failureAt(withPart({ pathname: '/no-such' })))).toEqual({
    found: 'database "no-such" does not exist',
    toDo: `run CREATE DATABASE "no-such" ENCODING 'UTF8' TEMPLATE template0, then run expediter migrate`,
  });
  expect(explainDatabaseError(await failureAt(withPart({ username: 'nobody' })))).toEqual({
    found: 'role "nobody" does not exist',
    toDo: 'correct the user in DATABASE_URL, or allow it in pg_hba.conf',
  });
});

it('the advice for a missing certificate file is to correct sslrootcert', async () => {
  const failure = await failureAt('postgres://x@127.0.0.1:1/x?sslrootcert=/no/ca.pem').catch((error: unknown) => error);
  const { found, toDo } = explainDatabaseError(failure);
  expect(found).toMatch(/no such file or directory, open '\/no\/ca\.pem'/);
  expect(toDo).toMatch(/^correct sslrootcert, /);
});

it('a role that may not log in and a role that may not read a table get different advice', async () => {
  const url = await createDatabase();
  const database = new URL(url).pathname.slice(1);
  const role = `locked-${randomUUID().slice(0, 8)}`;
  await queryOnce(url, `CREATE ROLE "${role}" LOGIN; REVOKE ALL ON DATABASE ${database} FROM PUBLIC`);
  const asRole = Object.assign(new URL(url), { username: role }).href;
  expect(explainDatabaseError(await failureAt(asRole)).toDo).toBe(
    `run as the owner of the database: GRANT CONNECT ON DATABASE "${database}" TO <the role of DATABASE_URL>`,
  );
  await queryOnce(url, `GRANT CONNECT ON DATABASE ${database} TO "${role}"`);
  const refused = await queryOnce(asRole, 'SELECT FROM expediter.orders').catch((error: unknown) => error);
  expect(explainDatabaseError(refused).toDo).toMatch(/^run expediter migrate with OWNER_DATABASE_URL set/);
  await queryOnce(url, `REVOKE ALL ON DATABASE ${database} FROM "${role}"; DROP ROLE "${role}"`);
});

it.each([
  ['28P01', 'password authentication failed for user "x"', 'correct user and password in DATABASE_URL'],
  ['ENOTFOUND', 'getaddrinfo ENOTFOUND db', 'correct the host in DATABASE_URL, or check DNS'],
  ['53300', 'sorry, too many clients already', 'raise max_connections, or lower POOL_SIZE'],
  [undefined, 'SASL: client password must be a string', 'write the password into DATABASE_URL'],
  [undefined, 'something else', 'check DATABASE_URL, DNS, the network and the database'],
])('the advice for the code %s with "%s" is: %s', (code, message, toDo) => {
  expect(explainDatabaseError(Object.assign(new Error(message), { code }))).toEqual({ found: message, toDo });
});
