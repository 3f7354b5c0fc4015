/** What to do if Postgres cannot be used, by SQLSTATE or by Node's code. */
const REMEDIES = new Map([
  ['ECONNREFUSED', 'start Postgres, or correct host and port in DATABASE_URL'],
  ['ENOENT', 'start Postgres, or correct the folder of its socket in DATABASE_URL'],
  ['ENOTFOUND', 'correct the host in DATABASE_URL, or check DNS'],
  ['EAI_AGAIN', 'correct the host in DATABASE_URL, or check DNS'],
  ['28000', 'correct the user in DATABASE_URL, or allow it in pg_hba.conf'],
  ['28P01', 'correct user and password in DATABASE_URL'],
  ['42501', 'run expediter migrate with OWNER_DATABASE_URL set, which gives the role of DATABASE_URL its rights'],
  ['53300', 'raise max_connections, or lower POOL_SIZE'],
  ['55P03', 'end what holds the lock: see pg_stat_activity and pg_prepared_xacts'],
  ['57P03', 'wait until Postgres has started, or find out why it stops'],
]);
const UNKNOWN = 'check DATABASE_URL, DNS, the network and the database';

/** @returns the message of Postgres or of the connection, without a password, and what to do */
export function explainDatabaseError(error: unknown): { found: string; toDo: string } {
  const { message = String(error), errors, ...about } = error as Partial<Failure> & { errors?: Error[] };
  // If the connection was refused, there is one error per address, and this error has no message of its own.
  const found = [...new Set((errors ?? [{ message }]).map((each) => each.message))].join(', ');
  return { found, toDo: remedyOf(about, found) };
}

/** An error of Postgres, of Node, or of the client. `routine` is the function of Postgres that raised it. */
type Failure = { message: string; code: string; syscall: string; routine: string };

/** One code has different causes. Postgres writes messages in its server's language, so they do not tell the cause. */
function remedyOf({ code = '', syscall, routine }: Partial<Failure>, message: string): string {
  // The name of a database or role is always in quotes.
  const [, name = 'expediter'] = /"(.+)"/.exec(message) ?? [];
  if (code === 'ENOENT' && syscall === 'open') {
    return 'correct sslrootcert, sslcert or sslkey in DATABASE_URL: this file is not there';
  }
  if (code === '42501' && routine === 'CheckMyDatabase') {
    return `run as the owner of the database: GRANT CONNECT ON DATABASE "${name}" TO <the role of DATABASE_URL>`;
  }
  if (code === '3D000') {
    return `run CREATE DATABASE "${name}" ENCODING 'UTF8' TEMPLATE template0, then run expediter migrate`;
  }
  const known = REMEDIES.get(code);
  if (known !== undefined) return known;
  if (/password must be a string/.test(message)) return 'write the password into DATABASE_URL';
  if (/\bSSL\b/.test(message)) return 'set sslmode in DATABASE_URL to a mode that Postgres accepts';
  if (/unsupported startup parameter/.test(message))
    return 'let the pooler ignore what it does not know (in PgBouncer: ignore_startup_parameters = options)';
  if (/certificate/i.test(message))
    return 'set sslrootcert in DATABASE_URL to the CA certificate, and use a host name that the server certificate contains';
  return UNKNOWN;
}
