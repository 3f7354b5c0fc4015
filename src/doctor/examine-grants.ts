import type { Pool } from 'pg';
import { readConfigOf } from '../config.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning } = reporterOf('operators');

/** Checks that somebody may do something, and that not everybody may do everything. */
export async function examineGrants(env: NodeJS.ProcessEnv, pool: Pool): Promise<Finding[]> {
  const { OIDC_ISSUER, OPERATOR_TOKEN } = readConfigOf(env, 'OIDC_ISSUER', 'OPERATOR_TOKEN');
  const { rows } = await pool.query<{ grants: number; admins: number; tokens: number }>(
    `SELECT count(*)::int AS grants, count(*) FILTER (WHERE roles @> '{admin}' AND locations IS NULL)::int AS admins,
            (SELECT count(*)::int FROM operator_tokens
             WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())) AS tokens
     FROM operator_grants`,
  );
  const { grants, admins, tokens } = rows[0] ?? { grants: 0, admins: 0, tokens: 0 };
  const findings: Finding[] = [];
  if (OIDC_ISSUER !== undefined) {
    findings.push(
      admins > 0
        ? ok('grants', `${grants}, of them ${admins} of admins`)
        : warning(
            'grants',
            grants === 0 ? 'nothing was granted to anybody: nobody can sign in' : 'nobody was made an admin',
            'expediter operator grant add --email you@example.com --role admin',
          ),
    );
  }
  if (OPERATOR_TOKEN !== undefined && (tokens > 0 || (OIDC_ISSUER !== undefined && admins > 0))) {
    findings.push(
      warning(
        'OPERATOR_TOKEN',
        'it is set beside operators with names: whoever has it may do everything, and nobody knows who it was',
        'give each program a token of its own, then unset it',
      ),
    );
  }
  return findings;
}
