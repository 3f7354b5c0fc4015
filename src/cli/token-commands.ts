import type { Command } from 'commander';
import type { Pool } from 'pg';
import { readConfigOf } from '../config.ts';
import { listLocations } from '../core/locations/locations.ts';
import {
  issueToken,
  listTokens,
  revokeToken,
  stateOfToken,
  type TokenRow,
  type TokenState,
} from '../core/locations/webhook-tokens.ts';
import { webhookUrl } from '../core/domain/webhook-path.ts';
import { audited } from '../core/operators/audit.ts';
import { actAtLocation } from './act-at-location.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples } from './examples.ts';
import { NotFound, noSuchLocation } from './failures.ts';
import { facts, print, table } from './print.ts';
import { readTime } from './read-time.ts';
import { withDatabase } from './with-database.ts';

export function addTokenCommands(program: Command): void {
  const token = program
    .command('token')
    .description("what lets a location's POS through the webhook door")
    .addHelpText(
      'after',
      examples('expediter token issue --location club-1 --expires 90d', 'expediter token list --location club-1'),
    );

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

  token
    .command('revoke')
    .description('shut a token out, within five seconds')
    .argument('<tokenId>', 'see: expediter token list')
    .addHelpText('after', examples('expediter token revoke 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11'))
    .action(async (tokenId: string, _options: object, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const found = await withDatabase(DATABASE_URL, async (pool) => {
        // The argument may be the token itself, which neither the audit nor a log should hold.
        const known = (await listTokens(pool, undefined)).find((each) => each.tokenId === tokenId);
        if (known === undefined) return false;
        const act = { did: 'revoke', locationId: known.locationId, subject: tokenId };
        return audited(pool, commandLineActor(), act, () => revokeToken(pool, tokenId));
      });
      if (!found) throw new NotFound('no token has this id; see: expediter token list');
      print(command, { tokenId, revoked: true }, `${tokenId} is revoked; it opens nothing from five seconds on`);
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
