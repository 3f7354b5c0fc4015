/** What to do where Postgres cannot be used, by SQLSTATE or by Node's code. */
const REMEDIES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'start Postgres, or correct host and port in DATABASE_URL',
  ENOENT: 'start Postgres, or correct the folder of its socket in DATABASE_URL',
  ENOTFOUND: 'correct the host in DATABASE_URL, or look at DNS',
  EAI_AGAIN: 'correct the host in DATABASE_URL, or look at DNS',
  '28000': 'correct the user in DATABASE_URL, or let pg_hba.conf admit it',
  '28P01': 'correct user and password in DATABASE_URL',
  '42501': 'give the role of DATABASE_URL its rights: expediter migrate, with OWNER_DATABASE_URL set',
  '53300': 'raise max_connections, or lower POOL_SIZE',
  '57P03': 'wait until it has started, or see why it stops',
};
const UNKNOWN = 'look at DATABASE_URL, DNS, the network and the database';

/** @returns what Postgres or the connection to it says, without a password, and what to do about it */
export function explainDatabaseError(error: unknown): { found: string; toDo: string } {
  const { code = '', message = String(error), errors } = error as { code?: string; message?: string; errors?: Error[] };
  // A refused connection is one error for each of its addresses, and has no message of its own.
  const found = [...new Set((errors ?? [{ message }]).map((each) => each.message))].join(', ');
  return { found, toDo: REMEDIES[code] ?? remedyIn(code, found) };
}

function remedyIn(code: string, message: string): string {
  if (code === '3D000') {
    // Postgres speaks the language of its server, in which the name is between quotes all the same.
    const [, name = 'expediter'] = /"(.+)"/.exec(message) ?? [];
    return `make it: CREATE DATABASE "${name}" ENCODING 'UTF8' TEMPLATE template0, and then: expediter migrate`;
  }
  if (/password must be a string/.test(message)) return 'write the password into DATABASE_URL';
  if (/\bSSL\b/.test(message)) return 'let sslmode in DATABASE_URL say what Postgres takes';
  if (/certificate/i.test(message))
    return 'let sslrootcert in DATABASE_URL name the CA, and its host be in the certificate';
  return UNKNOWN;
}
