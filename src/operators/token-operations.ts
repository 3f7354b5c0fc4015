import { z } from 'zod';
import { facts, readFuture, tableOf } from '../terminal/print.ts';
import { isStorable } from '../core/domain/cause-text.ts';
import { webhookUrl } from '../core/domain/paths.ts';
import { listLocations } from '../core/locations/locations.ts';
import { Id } from '../core/domain/order.ts';
import {
  IssuedToken,
  KeyUsed,
  RevokedToken,
  TOKEN_STATES,
  TokenRow,
  issueToken,
  listTokens,
  revokeToken,
  stateOfToken,
} from '../core/locations/webhook-tokens.ts';
import { NO_PUBLIC_URL, noSuch, operation, type CommandOption, type Operation } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { EXAMPLE_ID, group, idOf, LocationParams, optionalFields, optionsOf, When } from './requests.ts';

export const Label = z
  .string()
  .max(200)
  .refine(isStorable, { error: 'contains a NUL or a lone surrogate' })
  .meta({ description: 'What the token is for.', examples: ['till, 2027'] });

export const TOKEN_OPTIONS: readonly CommandOption[] = [
  { flags: '--label <text>', about: 'what the token is for' },
  {
    flags: '--expires <when>',
    about: 'after a while (90d, 12h, 30m, 45s), or at a time (2027-01-31T00:00:00Z)',
    read: readFuture,
  },
];

const issue = operation({
  id: 'issueToken',
  access: { role: 'integrator', of: 'location', does: 'issue' },
  api: {
    route: 'POST /locations/:locationId/tokens',
    summary: 'Make a webhook token for a location',
    description:
      'Only this answer contains the token, because only its SHA-256 is stored. Earlier tokens stay valid. If the ' +
      'answer may have been lost, repeat the request with the same `Idempotency-Key`: you get the same token, as long as it is valid.',
    output: IssuedToken,
    answer: 'The token.',
    refuses: [409, 422],
  },
  takes: ['idempotencyKey'],
  params: LocationParams,
  body: optionalFields({
    label: Label.optional(),
    expiresAt: When.optional().meta({ description: 'By default it never expires.' }),
  }),
  reads: ['PUBLIC_URL'],
  async run(caller, { locationId, label, expiresAt }) {
    const { pool, by, config, service, note } = caller;
    const { idempotencyKey } = caller.headers;
    const origin = service === undefined ? config.PUBLIC_URL : caller.settings.publicUrl;
    if (origin === undefined || origin === '') throw new NotDone(409, NO_PUBLIC_URL);
    const repeatable =
      idempotencyKey === undefined
        ? undefined
        : { keys: caller.settings.keys, by: `${by.kind} ${by.id}`, idempotencyKey };
    const { token, tokenId, integration } = await issueToken(pool, { locationId, label, expiresAt, repeatable }).catch(
      (error: unknown) => {
        throw error instanceof KeyUsed ? new NotDone(error.statusCode, error.message) : error;
      },
    );
    note(tokenId);
    return { token, url: webhookUrl(origin, { token, integration, locationId }), tokenId };
  },
  print: facts,
  command: {
    name: 'token issue',
    argument: false,
    about:
      'make a token and its webhook URL. Not needed before `provider connect`, which makes its own. They are shown only once, because only the SHA-256 is stored. Earlier ' +
      'tokens stay valid. This needs PUBLIC_URL',
    options: [{ flags: '--location <id>', about: 'for this location', required: true }, ...TOKEN_OPTIONS],
    examples: [
      'expediter token issue --location club-1 --label "till, 2026"',
      'expediter token issue --location club-1 --expires 90d --json',
    ],
    read: ({ location, label, expires }) => ({ locationId: location, label, expiresAt: expires }),
  },
});

const TokensQuery = z.strictObject({ location: Id.optional().meta({ description: 'At this location.' }), group });

const list = operation({
  id: 'listTokens',
  access: { role: 'any', of: 'list' },
  api: {
    route: 'GET /tokens',
    summary: 'Webhook tokens, without the tokens themselves',
    description: 'The list includes expired and revoked tokens.',
    output: z.object({ tokens: z.array(TokenRow.extend({ state: z.enum(TOKEN_STATES) })) }),
    answer: 'The tokens.',
  },
  query: TokensQuery,
  async run({ pool, within, service }, { location }) {
    const integrations = new Map((await listLocations(pool)).map((row) => [row.locationId, row.integration]));
    if (service === undefined && location !== undefined && !integrations.has(location)) {
      throw new NotDone(404, noSuch.location);
    }
    const [tokens, where] = [await listTokens(pool, location), within(location)];
    return {
      tokens: tokens
        .filter(({ locationId }) => where?.includes(locationId) !== false)
        .map((token) => ({ ...token, state: stateOfToken(token, integrations.get(token.locationId), new Date()) })),
    };
  },
  print: ({ tokens }) =>
    tableOf('No tokens yet. See: expediter token issue --help', tokens, (row) => ({
      token: row.tokenId,
      location: row.locationId,
      integration: row.integration,
      label: row.label,
      state: row.state,
      created: row.createdAt,
      expires: row.expiresAt,
      'last used': row.lastUsedAt,
    })),
  command: {
    name: 'token list',
    about:
      'list tokens with their state (valid, expired, revoked, or of a previous integration), their expiry, and when ' +
      'a webhook last used them. The token itself is never shown',
    options: optionsOf(TokensQuery, '--location <id>', '--group <name>'),
    examples: ['expediter token list', 'expediter token list --location club-1 --json'],
    rows: 'tokens',
  },
});

const revoke = operation({
  id: 'revokeToken',
  access: { role: 'integrator', of: 'location', does: 'revoke' },
  missing: 'The location has no token with this id.',
  api: {
    route: 'DELETE /locations/:locationId/tokens/:tokenId',
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
    complete: {
      by: list,
      async find(ask, { tokenId }) {
        const { tokens } = (await ask(list, {})) as { tokens: TokenRow[] };
        const known = tokens.find((each) => each.tokenId === tokenId);
        return known === undefined
          ? 'No token has this id. See: expediter token list'
          : { tokenId, locationId: known.locationId };
      },
    },
  },
});

export const TOKEN_OPERATIONS: readonly Operation[] = [issue, list, revoke];
