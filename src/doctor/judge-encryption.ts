import { isLoopback } from '../config.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning } = reporterOf('database');

/** One connection to Postgres: what its client was told, and whether it is encrypted. */
export type Link = {
  /** A name, an address, or the folder of a socket. */
  host: string;
  /** As in the options of `pg`, which verifies unless it is told not to. */
  ssl: boolean | { rejectUnauthorized?: boolean; checkServerIdentity?: unknown };
  encrypted: boolean;
};

const TO_DO = 'write sslmode=verify-full into DATABASE_URL, and sslrootcert=/path/ca.pem where the CA is your own';

/** Judges whether somebody on the way to Postgres could read, or be taken for Postgres. */
export function judgeEncryption({ host, ssl, encrypted }: Link, env: NodeJS.ProcessEnv): Finding {
  if (host.startsWith('/')) return ok('encryption', 'by a socket of this machine');
  if (isLoopback(host)) return ok('encryption', 'on this machine');
  if (!encrypted) return warning('encryption', `none on the way to ${host}: whoever is there reads and writes`, TO_DO);
  const options = typeof ssl === 'object' ? ssl : {};
  if (options.rejectUnauthorized === false || env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    return warning('encryption', `nobody verifies the certificate of ${host}: anybody can be it`, TO_DO);
  }
  if (options.checkServerIdentity !== undefined) {
    return warning('encryption', `nobody looks whether the certificate is that of ${host}`, TO_DO);
  }
  return ok('encryption', `TLS, and ${host} is who it says`);
}
