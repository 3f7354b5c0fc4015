import { z } from 'zod';
import { facts, readText, tableOf } from '../terminal/print.ts';
import { hasCredentials } from '../core/domain/has-credentials.ts';
import { SIGNAL_PATH } from '../core/domain/paths.ts';
import { isSecret } from '../core/domain/standard-webhooks.ts';
import { Typed } from '../core/domain/typed.ts';
import { type AllowedHosts, refuseUrl } from '../core/egress/allowed-hosts.ts';
import { IssuedToken, RevokedToken } from '../core/locations/webhook-tokens.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { SIGNAL_KINDS } from '../core/signals/find-order-id.ts';
import {
  issueSignalToken,
  listSignalTokens,
  revokeSignalToken,
  SignalTokenRow,
} from '../core/signals/signal-tokens.ts';
import { POS, operation, type Operation } from './operation.ts';
import { EXAMPLE_ID, idOf, optionalFields, When } from './requests.ts';
import { Label, TOKEN_OPTIONS } from './token-operations.ts';

/** Only for integrators of the whole service: a signal may name an order of any location. */
const access = { role: 'integrator', of: 'all' } as const;

const Body = optionalFields({
  kind: z.enum(SIGNAL_KINDS).default('plain').meta({
    description: 'How the platform signs. With `plain` it does not, and the token is the only proof.',
  }),
  secrets: z
    .array(Typed(255))
    .min(1)
    .max(2)
    .optional()
    .meta({
      description: "For `standard-webhooks` and `shopify`: the platform's secret; during a rotation, both.",
      examples: [['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']],
    }),
  jwksUrl: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .optional()
    .meta({
      description: "For `saleor`: the URL of the platform's keys.",
      examples: ['https://shop.example.com/.well-known/jwks.json'],
    }),
  label: Label.optional(),
  expiresAt: When.optional().meta({ description: 'By default it never expires.' }),
});

/** @throws NotDone if the secrets do not fit the kind, or the URL leads to a host that may not be called */
function secretsOf({ kind, secrets = [], jwksUrl }: z.output<typeof Body>, allowed: AllowedHosts): readonly string[] {
  const [needsSecrets, needsUrl] = [kind === 'standard-webhooks' || kind === 'shopify', kind === 'saleor'];
  if (needsSecrets !== secrets.length > 0)
    throw new NotDone(400, `secrets must ${needsSecrets ? '' : 'not '}be given for ${kind} (--secrets).`);
  if (needsUrl !== (jwksUrl !== undefined))
    throw new NotDone(400, `jwksUrl must ${needsUrl ? '' : 'not '}be given for ${kind}.`);
  if (kind === 'standard-webhooks' && !secrets.every(isSecret)) {
    throw new NotDone(400, 'secrets must be 24 to 64 bytes in base64, with or without whsec_ before them.');
  }
  if (jwksUrl === undefined) return secrets;
  const url = new URL(jwksUrl);
  if (hasCredentials(url)) throw new NotDone(400, 'jwksUrl must have no user and no password.');
  const refused = refuseUrl(url, allowed);
  if (refused === undefined) return [jwksUrl];
  throw new NotDone(400, `jwksUrl must be https at a public host, or a host of ALLOW_PRIVATE_HOSTS; it is ${refused}.`);
}

const issue = operation({
  id: 'issueSignalToken',
  access: { ...access, does: 'issue signal token' },
  api: {
    route: 'POST /signal-tokens',
    summary: 'Make a token for signals by HTTP',
    description:
      "Only this answer contains the token, because only its SHA-256 is stored. The platform's secrets are stored " +
      'encrypted and never shown. To rotate a token or a secret, make another token, and revoke this one when the ' +
      'platform uses the other.',
    output: IssuedToken.extend({ url: z.string().meta({ description: 'The URL for the platform.' }) }),
    answer: 'The token.',
    refuses: [409],
  },
  body: Body,
  reads: POS,
  async run(caller, input) {
    const { pool, config, service, settings, pos, note } = caller;
    const secrets = secretsOf(input, pos.allowedHosts);
    const origin = service === undefined ? config.PUBLIC_URL : settings.publicUrl;
    if (origin === undefined || origin === '')
      throw new NotDone(409, 'PUBLIC_URL is not set, so the token has no URL.');
    const { token, tokenId } = await issueSignalToken(pool, settings.keys, { ...input, secrets });
    note(tokenId);
    return { token, url: `${origin}${SIGNAL_PATH}?token=${token}`, tokenId };
  },
  print: facts,
  command: {
    name: 'signal-token issue',
    argument: false,
    about:
      'make a token and its URL for signals by HTTP. They are shown only once, because only the SHA-256 is stored. This ' +
      'needs PUBLIC_URL',
    options: [
      { flags: '--kind <kind>', about: 'how the platform signs, by default plain', choices: SIGNAL_KINDS },
      {
        flags: '--secrets <file>',
        about:
          "for standard-webhooks and shopify: a file with the platform's secret, or - for standard input. During a rotation, two lines",
      },
      { flags: '--jwks-url <url>', about: "for saleor: the URL of the platform's keys" },
      ...TOKEN_OPTIONS,
    ],
    examples: [
      'expediter signal-token issue --label "order app"',
      'expediter signal-token issue --kind shopify --secrets - < client-secret.txt',
      'expediter signal-token issue --kind saleor --jwks-url https://shop.example.com/.well-known/jwks.json',
    ],
    read: async ({ secrets: file, expires, ...typed }) => ({
      ...typed,
      expiresAt: expires,
      ...(typeof file === 'string' && { secrets: (await readText('--secrets', file)).trim().split(/\r?\n/) }),
    }),
  },
});

const list = operation({
  id: 'listSignalTokens',
  access,
  api: {
    route: 'GET /signal-tokens',
    summary: 'Tokens for signals, without the tokens and secrets themselves',
    description: 'The list includes expired and revoked tokens.',
    output: z.object({ tokens: z.array(SignalTokenRow) }),
    answer: 'The tokens.',
  },
  run: async ({ pool }) => ({ tokens: await listSignalTokens(pool) }),
  print: ({ tokens }) =>
    tableOf('No tokens yet. See: expediter signal-token issue --help', tokens, (row) => ({
      token: row.tokenId,
      kind: row.kind,
      label: row.label,
      state: row.state,
      created: row.createdAt,
      expires: row.expiresAt,
      'last used': row.lastUsedAt,
    })),
  command: {
    name: 'signal-token list',
    about: 'list tokens for signals with their kind, state, expiry and last use. The token itself is never shown',
    examples: ['expediter signal-token list', 'expediter signal-token list --json'],
    rows: 'tokens',
  },
});

const revoke = operation({
  id: 'revokeSignalToken',
  access: { ...access, does: 'revoke signal token' },
  missing: 'No token for signals has this id.',
  api: {
    route: 'DELETE /signal-tokens/:tokenId',
    summary: 'Revoke a token for signals, within five seconds',
    description: 'This cannot be undone.',
    output: RevokedToken,
    answer: 'It is revoked.',
  },
  params: z.strictObject({ tokenId: idOf('token') }),
  run: async ({ pool }, { tokenId }) =>
    (await revokeSignalToken(pool, tokenId)) ? { tokenId, revoked: true as const } : undefined,
  print: ({ tokenId }) => `${tokenId} is revoked; it no longer works after five seconds`,
  command: {
    name: 'signal-token revoke',
    about: 'revoke a token for signals, within five seconds',
    argument: { flags: '<tokenId>', about: 'its id, from the list; never the token itself', field: 'tokenId' },
    examples: [`expediter signal-token revoke ${EXAMPLE_ID}`],
  },
});

export const SIGNAL_TOKEN_OPERATIONS: readonly Operation[] = [issue, list, revoke];
