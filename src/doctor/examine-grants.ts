import type { Pool } from 'pg';
import { hasOperators, readConfigOf } from '../config.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('operators');

const IS_ADMIN = `roles @> '{admin}' AND locations IS NULL`;

/** Checks that somebody may do something, and that not everybody may do everything. */
export async function examineGrants(env: NodeJS.ProcessEnv, pool: Pool): Promise<Finding[]> {
  const config = readConfigOf(env, 'OIDC_ISSUER', 'OPERATOR_TOKEN', 'OPERATOR_PORT');
  const { OIDC_ISSUER, OPERATOR_TOKEN } = config;
  const { rows } = await pool.query<{ grants: number; admins: number; tokens: number; adminTokens: number }>(
    `SELECT * FROM
       (SELECT count(*)::int AS grants, count(*) FILTER (WHERE ${IS_ADMIN})::int AS admins FROM operator_grants) AS g,
       (SELECT count(*)::int AS tokens, count(*) FILTER (WHERE ${IS_ADMIN})::int AS "adminTokens" FROM operator_tokens
        WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())) AS t`,
  );
  const { grants = 0, admins = 0, tokens = 0, adminTokens = 0 } = rows[0] ?? {};
  const findings: Finding[] = [];
  const isEnded = OIDC_ISSUER !== undefined && admins > 0;
  const isAnyoneAdmin = OPERATOR_TOKEN !== undefined || adminTokens > 0 || isEnded;
  if (hasOperators(config) && !isAnyoneAdmin) {
    findings.push(
      failed(
        'admins',
        'nobody can be one: there is no OPERATOR_TOKEN, and no token or grant with the role admin at all locations',
        'expediter operator token issue --name you --role admin',
      ),
    );
  }
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
  if (OPERATOR_TOKEN !== undefined && (tokens > 0 || isEnded)) {
    const problem = isEnded
      ? 'it opens nothing any more, since an admin signs in by name'
      : 'it is set beside operators with names: whoever has it may do everything, and nobody knows who it was';
    findings.push(warning('OPERATOR_TOKEN', problem, 'give each program a token of its own, then unset it'));
  }
  return findings;
}
