import { z } from 'zod';
import { facts, readFuture, table } from '../cli/print.ts';
import { webhookUrl } from '../core/domain/make-token.ts';
import { listLocations } from '../core/locations/locations.ts';
import { RevokedToken, issueToken, listTokens, revokeToken, stateOfToken } from '../core/locations/webhook-tokens.ts';
import { NotDone, noSuch, operation, type Operation } from './operation.ts';
import { EXAMPLE_ID, LocationParams, When, idOf } from './requests.ts';

const issue = operation({
  id: 'issueToken',
  role: 'admin',
  of: 'location',
  does: 'issue',
  params: LocationParams,
  body: z.strictObject({ label: z.string().optional(), expiresAt: When.optional() }),
  reads: ['PUBLIC_URL', 'PORT'],
  async run({ pool, config, note }, { locationId, label, expiresAt }) {
    const { token, tokenId, integration } = await issueToken(pool, { locationId, label, expiresAt });
    note(tokenId);
    const origin = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`;
    return { token, url: webhookUrl(origin, { token, integration, locationId }), tokenId };
  },
  print(issued) {
    const isLocal = issued.url.startsWith('http://localhost:');
    const note = '\n\nThis URL works only on this machine. Set PUBLIC_URL for one that a POS can call.';
    return `${facts(issued)}${isLocal ? note : ''}`;
  },
  command: {
    name: 'token issue',
    about:
      'make a token and its webhook URL. They are shown only once, because only the SHA-256 is stored. Earlier ' +
      'tokens stay valid. Without PUBLIC_URL the URL begins with http://localhost:PORT',
    options: [
      { flags: '--location <id>', about: 'for this location', required: true },
      { flags: '--label <text>', about: 'what the token is for' },
      {
        flags: '--expires <when>',
        about: 'after a while (90d, 12h, 30m, 45s), or at a time (2027-01-31T00:00:00Z)',
        read: readFuture,
      },
    ],
    examples: [
      'expediter token issue --location club-1 --label "till, 2026"',
      'expediter token issue --location club-1 --expires 90d --json',
    ],
    read: ({ location, label, expires }) => ({ locationId: location, label, expiresAt: expires }),
  },
});

const list = operation({
  id: 'listTokens',
  role: 'viewer',
  of: 'list',
  query: z.strictObject({ location: z.string().optional() }),
  async run({ pool, within }, { location }) {
    const integrations = new Map((await listLocations(pool)).map((row) => [row.locationId, row.integration]));
    if (location !== undefined && !integrations.has(location)) throw new NotDone(404, noSuch.location);
    const [tokens, where] = [await listTokens(pool, location), within(location)];
    return {
      tokens: tokens
        .filter(({ locationId }) => where?.includes(locationId) !== false)
        .map((token) => ({ ...token, state: stateOfToken(token, integrations.get(token.locationId), new Date()) })),
    };
  },
  print: ({ tokens }) =>
    table(
      tokens.map((row) => ({
        token: row.tokenId,
        location: row.locationId,
        integration: row.integration,
        label: row.label,
        state: row.state,
        created: row.createdAt,
        expires: row.expiresAt,
        'last used': row.lastUsedAt,
      })),
      'No tokens yet. See: expediter token issue --help',
    ),
  command: {
    name: 'token list',
    about:
      'list tokens with their state (valid, expired, revoked, or of a previous integration), their expiry, and when ' +
      'a webhook last used them. The token itself is never shown',
    options: [{ flags: '--location <id>', about: 'only of this location' }],
    examples: ['expediter token list', 'expediter token list --location club-1 --json'],
    rows: 'tokens',
  },
});

const revoke = operation({
  id: 'revokeToken',
  role: 'admin',
  of: 'location',
  does: 'revoke',
  missing: 'The location has no token with this id.',
  api: {
    tag: 'Locations',
    route: 'POST /locations/:locationId/tokens/:tokenId/revoke',
    summary: 'Revoke a token, within five seconds',
    description: 'This cannot be undone.',
    output: RevokedToken,
    answer: 'It is revoked.',
  },
  params: LocationParams.extend({ tokenId: idOf('token') }),
  run: async ({ pool }, { locationId, tokenId }) =>
    (await revokeToken(pool, tokenId, locationId)) ? { tokenId, revoked: true as const } : undefined,
  print: ({ tokenId }) => `${tokenId} is revoked; it no longer works after five seconds`,
  command: {
    name: 'token revoke',
    about: 'revoke a token, within five seconds',
    argument: { flags: '<tokenId>', about: 'its id, from the list; never the token itself', field: 'tokenId' },
    examples: [`expediter token revoke ${EXAMPLE_ID}`],
    async complete(pool, { tokenId }) {
      const known = (await listTokens(pool, undefined)).find((each) => each.tokenId === tokenId);
      return known === undefined
        ? 'No token has this id. See: expediter token list'
        : { tokenId, locationId: known.locationId };
    },
  },
});

export const TOKEN_OPERATIONS: readonly Operation[] = [issue, list, revoke];
