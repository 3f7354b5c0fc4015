import type { Command } from 'commander';
import type { Pool } from 'pg';
import { readConfigOf } from '../server/config.ts';
import { listLocations } from '../core/locations/locations.ts';
import {
  issueToken,
  listTokens,
  stateOfToken,
  type TokenRow,
  type TokenState,
} from '../core/locations/webhook-tokens.ts';
import { webhookUrl } from '../core/domain/make-token.ts';
import { groupAt } from '../operators/add-operations.ts';
import { actAtLocation } from './acts-table.ts';
import { examples, facts, print, readTime, table } from './print.ts';
import { noSuchLocation } from './failures.ts';
import { withDatabase } from './settings-rules.ts';

export function addTokenCommands(program: Command): void {
  const token = groupAt(program, ['token']);

  token
    .command('issue')
    .description(
      'make a token and its webhook URL, shown this once; earlier tokens stay valid. ' +
        'Without PUBLIC_URL the URL is that of this machine, http://localhost:PORT',
    )
    .requiredOption('--location <id>', 'whose')
    .option('--label <text>', 'what it is for, to know it by later')
    .option('--expires <when>', 'after a while (90d, 12h, 30m, 45s), or at a time (2027-01-31T00:00:00Z)', (text) =>
      readTime(text, 'future'),
    )
    .addHelpText(
      'after',
      examples(
        'expediter token issue --location club-1 --label "till, 2026"',
        'expediter token issue --location club-1 --expires 90d --json',
      ),
    )
    .action(async (options: { location: string; label?: string; expires?: Date }, command: Command) => {
      const env = readConfigOf(process.env, 'DATABASE_URL', 'PUBLIC_URL', 'PORT');
      const { location: locationId, label, expires } = options;
      const issued = await withDatabase(env.DATABASE_URL, (pool) =>
        actAtLocation(
          pool,
          'issue',
          locationId,
          () => issueToken(pool, { locationId, label, expiresAt: expires }),
          ({ tokenId }) => tokenId,
        ),
      );
      const url = webhookUrl(env.PUBLIC_URL ?? `http://localhost:${env.PORT}`, { ...issued, locationId });
      const shown = { token: issued.token, url, tokenId: issued.tokenId };
      print(command, shown, facts(shown));
      if (env.PUBLIC_URL === undefined) {
        process.stderr.write(
          `note: PUBLIC_URL is unset, so the URL is this machine's; example: https://expediter.example.com\n`,
        );
      }
    });

  token
    .command('list')
    .description(
      'tokens, whether they are valid, until when, and when a webhook came with each last; never a token itself',
    )
    .option('--location <id>', 'of this location alone')
    .addHelpText('after', examples('expediter token list', 'expediter token list --location club-1 --json'))
    .action(async (options: { location?: string }, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const rows = await withDatabase(DATABASE_URL, (pool) => assessedTokens(pool, options.location));
      print(
        command,
        rows,
        table(
          rows.map((row) => ({
            token: row.tokenId,
            location: row.locationId,
            integration: row.integration,
            label: row.label,
            state: row.state,
            created: row.createdAt,
            expires: row.expiresAt,
            'last used': row.lastUsedAt,
          })),
          'no tokens yet; see: expediter token issue --help',
        ),
      );
    });
}

/** Counts the valid tokens of a location. */
export async function countValidTokens(
  pool: Pool,
  location: { locationId: string; integration: string },
): Promise<number> {
  const tokens = await listTokens(pool, location.locationId);
  return tokens.filter((token) => stateOfToken(token, location.integration, new Date()) === 'valid').length;
}

async function assessedTokens(pool: Pool, locationId?: string): Promise<(TokenRow & { state: TokenState })[]> {
  const integrations = new Map((await listLocations(pool)).map((row) => [row.locationId, row.integration]));
  if (locationId !== undefined && !integrations.has(locationId)) throw noSuchLocation(locationId);
  const tokens = await listTokens(pool, locationId);
  return tokens.map((token) => ({
    ...token,
    state: stateOfToken(token, integrations.get(token.locationId), new Date()),
  }));
}
