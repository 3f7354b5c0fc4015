import { z } from 'zod';
import { facts, LIST, readFuture, readList, tableOf } from '../terminal/print.ts';
import type { Deed } from '../core/operators/audit.ts';
import { givenInWords, recordAtEach, rightInWords } from '../core/operators/given-right.ts';
import { ROLES } from '../core/operators/operator.ts';
import {
  NewOperatorGrant,
  OperatorGrant,
  addOperatorGrant,
  listOperatorGrants,
  removeOperatorGrant,
} from '../core/operators/operator-grants.ts';
import { ActiveSession, endSession, listSessions } from '../core/operators/operator-sessions.ts';
import {
  NewOperatorToken,
  OperatorToken,
  issueOperatorToken,
  listOperatorTokens,
  revokeOperatorToken,
} from '../core/operators/operator-tokens.ts';
import { freeCases } from '../core/cases/cases.ts';
import { operation, type Caller, type CommandOption, type Operation, type Options } from './operation.ts';
import { EXAMPLE_ID, SessionParams, When, idOf, optionsOf } from './requests.ts';

const TokenParams = z.strictObject({ tokenId: idOf('token') });
const AddGrant = NewOperatorGrant.meta({
  examples: [{ email: 'anna@example.com', roles: ['viewer'], locations: ['club-1'] }],
});
const GrantParams = z.strictObject({ grantId: idOf('grant') });
const IssueToken = NewOperatorToken.extend({
  expiresAt: When.refine((at) => at.getTime() > Date.now(), { error: 'must be in the future' })
    .nullable()
    .optional()
    .meta({ description: 'When the token expires: by default after 90 days, with null never.' }),
}).meta({ examples: [{ name: 'nightly-report', roles: ['viewer'], expiresAt: '2030-01-31T00:00:00Z' }] });

const RIGHT: readonly CommandOption[] = [
  { flags: '--role <role>', about: `one of ${ROLES.join(', ')}; ${LIST}`, read: readList, required: true },
  {
    flags: '--locations <ids>',
    about: `only at these locations; ${LIST}; by default at all locations`,
    read: readList,
  },
  { flags: '--location-groups <names>', about: `also at all locations of these groups; ${LIST}`, read: readList },
];
const withRight = ({ role, locations = null, ...typed }: Options): Options => ({ ...typed, roles: role, locations });

/** Records in the audit which roles were given or removed, and invalidates this process's cache. @returns `given` */
async function recordGiven<Given extends OperatorToken | OperatorGrant>(
  { pool, by, note, service }: Caller,
  action: Deed,
  given: Given | { refused: string } | undefined,
): Promise<Given | { refused: string } | undefined> {
  if (given === undefined || 'refused' in given) return given;
  service?.identify.invalidateCache();
  note(givenInWords(given));
  await recordAtEach(pool, by, action, given);
  return given;
}

/** Records what was removed. Cases of people who cannot take care of them any more are free again. */
async function recordTaken<Taken extends OperatorToken | OperatorGrant>(
  caller: Caller,
  action: Deed,
  taken: Taken | undefined,
): Promise<Taken | { refused: string } | undefined> {
  if (taken !== undefined) await freeCases(caller.pool, taken, caller.by.name);
  return recordGiven(caller, action, taken);
}

const listTokens = operation({
  id: 'listOperatorTokens',
  access: { role: 'admin', of: 'list' },
  api: {
    route: 'GET /operators/tokens',
    summary: 'Named tokens',
    description:
      'Includes expired and revoked tokens. An admin of some locations sees what applies there, also by a group.',
    output: z.object({ tokens: z.array(OperatorToken) }),
    answer: 'The named tokens.',
  },
  run: async ({ pool, scope }) => ({ tokens: await listOperatorTokens(pool, scope()) }),
  print: ({ tokens }) =>
    tableOf('No named tokens yet. See: expediter operator token issue --help', tokens, (each) => ({
      token: each.tokenId,
      name: each.name,
      may: rightInWords(each),
      state: each.state,
      created: each.createdAt,
      expires: each.expiresAt,
      'last used': each.lastUsedAt,
    })),
  command: {
    name: 'operator token list',
    about: 'list named tokens with their roles, their state and their last use',
    examples: ['expediter operator token list'],
    rows: 'tokens',
  },
});

const issueToken = operation({
  id: 'issueOperatorToken',
  access: { role: 'admin', of: 'given', does: 'issue token' },
  api: {
    route: 'POST /operators/tokens',
    summary: 'Make a named token',
    description:
      'Only this answer contains the token, because only its SHA-256 is stored. No other valid token may have the ' +
      'same name or a name that looks like it. An admin of some locations can make at most 100 tokens.',
    output: OperatorToken.extend({ token: z.string() }).meta({ id: 'IssuedOperatorToken' }),
    answer: 'The token.',
    refuses: [409],
  },
  body: IssueToken,
  async run(caller, wanted) {
    caller.note(givenInWords(wanted));
    return recordGiven(
      caller,
      { action: 'issue token' },
      await issueOperatorToken(caller.pool, wanted, caller.scope()),
    );
  },
  print: ({ token, tokenId, name, expiresAt, ...right }) =>
    facts({ token, tokenId, name, may: rightInWords(right), expires: expiresAt }),
  command: {
    name: 'operator token issue',
    about: 'make a named token for the operator API (as Bearer) and for the console. It is shown only once',
    options: [
      ...optionsOf(IssueToken, '--name <name>'),
      ...RIGHT,
      {
        flags: '--expires <when>',
        about: 'after a while (12h, 30m, 45s), at a time (2027-01-31T00:00:00Z), or never; by default after 90d',
        read: (text) => (text === 'never' ? text : readFuture(text)),
      },
    ],
    examples: [
      'expediter operator token issue --name nightly-report --role viewer --expires 30d --json',
      'expediter operator token issue --name anna --role operator --role member-data --locations club-1',
    ],
    read: ({ expires, ...typed }) => ({ ...withRight(typed), expiresAt: expires === 'never' ? null : expires }),
  },
});

const revokeToken = operation({
  id: 'revokeOperatorToken',
  access: { role: 'admin', of: 'list', does: 'revoke token' },
  missing: 'No named token has this id, or it also applies where you are not an admin.',
  api: {
    route: 'POST /operators/tokens/:tokenId/revoke',
    summary: 'Revoke a named token and the sessions that it opened, within five seconds',
    description: 'This cannot be undone.',
    output: OperatorToken,
    answer: 'It is revoked.',
  },
  params: TokenParams,
  async run(caller, { tokenId }) {
    const revoked = await revokeOperatorToken(caller.pool, tokenId, caller.scope());
    return recordTaken(caller, { action: 'revoke token', subject: tokenId }, revoked);
  },
  print: ({ tokenId }) => `${tokenId} is revoked; it no longer works after five seconds`,
  command: {
    name: 'operator token revoke',
    about: 'revoke a named token and the sessions that it opened, within five seconds',
    argument: { flags: '<tokenId>', about: 'its id, from the list; never the token itself', field: 'tokenId' },
    examples: [`expediter operator token revoke ${EXAMPLE_ID}`],
  },
});

const listGrants = operation({
  id: 'listOperatorGrants',
  access: { role: 'admin', of: 'list' },
  api: {
    route: 'GET /operators/grants',
    summary: 'The roles of people who sign in',
    description:
      'A person has the roles of their address and their groups. Admins of some locations see what applies there.',
    output: z.object({ grants: z.array(OperatorGrant) }),
    answer: 'The grants.',
  },
  run: async ({ pool, scope }) => ({ grants: await listOperatorGrants(pool, scope()) }),
  print: ({ grants }) =>
    tableOf(
      'No grants yet. See: expediter operator grant add --help',
      grants,
      ({ grantId, email, group, createdAt, ...right }) => ({
        grant: grantId,
        email,
        group,
        may: rightInWords(right),
        created: createdAt,
      }),
    ),
  command: {
    name: 'operator grant list',
    about: 'list who has which roles, and where',
    examples: ['expediter operator grant list'],
    rows: 'grants',
  },
});

const addGrant = operation({
  id: 'addOperatorGrant',
  access: { role: 'admin', of: 'given', does: 'give roles' },
  api: {
    route: 'POST /operators/grants',
    summary: 'Give roles to an address or to a group, within five seconds',
    description: 'Giving the same roles again changes nothing.',
    output: OperatorGrant,
    answer: 'The grant.',
    refuses: [409],
  },
  body: AddGrant,
  async run(caller, wanted) {
    caller.note(givenInWords(wanted));
    return recordGiven(caller, { action: 'give roles' }, await addOperatorGrant(caller.pool, wanted));
  },
  print: ({ grantId, email, group, ...right }) => facts({ grantId, to: email ?? group, may: rightInWords(right) }),
  command: {
    name: 'operator grant add',
    about:
      'give roles to an address or all members of a group, within five seconds, also if they are signed in already',
    options: [...optionsOf(AddGrant, '--email <address>', '--group <name>'), ...RIGHT],
    examples: [
      'expediter operator grant add --email anna@example.com --role viewer --locations club-1',
      'expediter operator grant add --group kitchen-managers --role operator --role member-data --json',
    ],
    read: withRight,
  },
});

const removeGrant = operation({
  id: 'removeOperatorGrant',
  access: { role: 'admin', of: 'list', does: 'take roles' },
  missing: 'No grant has this id, or it also applies where you are not an admin.',
  api: {
    route: 'POST /operators/grants/:grantId/remove',
    summary: 'Remove a grant of roles, within five seconds',
    description: "The person's sessions continue with the remaining roles. They end if no role remains.",
    output: OperatorGrant,
    answer: 'The grant that was removed.',
  },
  params: GrantParams,
  async run(caller, { grantId }) {
    const removed = await removeOperatorGrant(caller.pool, grantId, caller.scope());
    return recordTaken(caller, { action: 'take roles', subject: grantId }, removed);
  },
  print: (removed) => `${givenInWords(removed)}: taken back after five seconds`,
  command: {
    name: 'operator grant remove',
    about: 'remove a grant of roles, within five seconds',
    argument: { flags: '<grantId>', about: 'see: expediter operator grant list', field: 'grantId' },
    examples: [`expediter operator grant remove ${EXAMPLE_ID}`],
  },
});

const listOpen = operation({
  id: 'listSessions',
  access: { role: 'admin', of: 'all' },
  api: {
    route: 'GET /operators/sessions',
    summary: 'The browsers that are signed in',
    description: 'The most recently seen session is first. A session has the roles that its token or grants give now.',
    output: z.object({ sessions: z.array(ActiveSession) }),
    answer: 'All open sessions.',
  },
  reads: ['OPERATOR_TOKEN'],
  async run({ pool, config }) {
    return { sessions: await listSessions(pool, { operatorToken: config.OPERATOR_TOKEN }) };
  },
  print: ({ sessions }) =>
    tableOf('Nobody is signed in.', sessions, (each) => ({
      session: each.sessionId,
      name: each.name,
      kind: each.kind,
      from: each.source,
      browser: each.userAgent,
      'signed in': each.signedInAt,
      'last seen': each.lastSeenAt,
      expires: each.expiresAt,
    })),
  command: {
    name: 'operator session list',
    about: 'list who is signed in, from where, since when, and when they were last seen',
    examples: ['expediter operator session list'],
    rows: 'sessions',
  },
});

const revokeSession = operation({
  id: 'revokeSession',
  access: { role: 'admin', of: 'all', does: 'revoke session' },
  missing: 'No session has this id.',
  api: {
    route: 'POST /operators/sessions/:sessionId/revoke',
    summary: 'End the session of a browser, within five seconds',
    description: "The session's open streams end too. The person may sign in again.",
    output: z.object({ sessionId: z.string(), revoked: z.literal(true) }),
    answer: 'It is revoked.',
  },
  params: SessionParams,
  async run({ pool, service }, { sessionId }) {
    if (!(await endSession(pool, sessionId))) return undefined;
    service?.identify.invalidateCache();
    return { sessionId, revoked: true as const };
  },
  print: ({ sessionId }) => `${sessionId} is ended; it no longer works after five seconds`,
  command: {
    name: 'operator session revoke',
    about:
      'end the session of a browser, within five seconds. The person may sign in again, unless their token is ' +
      'revoked or their grant is removed',
    argument: { flags: '<sessionId>', about: 'see: expediter operator session list', field: 'sessionId' },
    examples: [`expediter operator session revoke ${EXAMPLE_ID}`],
  },
});

export const RIGHTS_OPERATIONS: readonly Operation[] = [
  listOpen,
  revokeSession,
  listTokens,
  issueToken,
  revokeToken,
  listGrants,
  addGrant,
  removeGrant,
];
