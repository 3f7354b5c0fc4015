import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';

/** Signed by itself, for 0.0.0.0 and localhost, until 2126. */
const MADE = fileURLToPath(new URL('postgres-tls/', import.meta.url));

export type Certificates = {
  /** For `startPostgres`. */
  settings: Record<string, string>;
  /** For `sslrootcert`. */
  file: string;
  remove(): void;
};

/** Lays certificate, key and these rules of pg_hba.conf where Postgres finds them: it wants the key for itself. */
export function prepareTls(hba: string): Certificates {
  const user = unprivilegedUser();
  const folder = mkdtempSync(join(sharedTmpdir(user), 'postgres-tls-'));
  const [file, key, rules] = ['server.crt', 'server.key', 'pg_hba.conf'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  copyFileSync(join(MADE, 'server.crt'), file);
  copyFileSync(join(MADE, 'server.key'), key);
  writeFileSync(rules, hba);
  for (const each of [file, key, rules]) chmodSync(each, 0o600);
  if (user !== undefined) for (const each of [folder, file, key, rules]) chownSync(each, user.uid, user.gid);
  return {
    settings: { ssl: 'on', ssl_cert_file: file, ssl_key_file: key, hba_file: rules },
    file,
    remove: () => rmSync(folder, { recursive: true }),
  };
}
