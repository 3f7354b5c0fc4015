import type { Access, Operation } from './operation.ts';
import { APPLICATION_OPERATIONS } from './application-operations.ts';
import { AVAILABILITY_OPERATIONS } from './availability-operations.ts';
import { CASE_OPERATIONS } from './case-operations.ts';
import { CONNECT_OPERATIONS } from './connect-operations.ts';
import { DIAGNOSTIC_OPERATIONS } from './diagnostic-operations.ts';
import { LIVE_OPERATIONS } from './live-operations.ts';
import { LOCATION_OPERATIONS } from './location-operations.ts';
import { MEMBER_OPERATIONS } from './member-operations.ts';
import { ORDER_OPERATIONS } from './order-operations.ts';
import { RIGHTS_OPERATIONS } from './rights-operations.ts';
import { PROVIDER_OPERATIONS } from './provider-operations.ts';
import { READING_OPERATIONS } from './reading-operations.ts';
import { SIGNAL_TOKEN_OPERATIONS } from './signal-token-operations.ts';
import { TOKEN_OPERATIONS } from './token-operations.ts';
import { WEBHOOK_OPERATIONS } from './webhook-operations.ts';

export const OPERATIONS: readonly Operation[] = [
  ...ORDER_OPERATIONS,
  ...CASE_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...LIVE_OPERATIONS,
  ...LOCATION_OPERATIONS,
  ...APPLICATION_OPERATIONS,
  ...AVAILABILITY_OPERATIONS,
  ...CONNECT_OPERATIONS,
  ...TOKEN_OPERATIONS,
  ...SIGNAL_TOKEN_OPERATIONS,
  ...PROVIDER_OPERATIONS,
  ...MEMBER_OPERATIONS,
  ...RIGHTS_OPERATIONS,
  ...READING_OPERATIONS,
  ...DIAGNOSTIC_OPERATIONS,
];

export const GROUPS: Readonly<Record<string, { about: string; more?: string; examples: readonly string[] }>> = {
  order: {
    about: 'orders on their way to a POS and back',
    examples: ['expediter order list --needs-operator', 'expediter order show order-4711'],
  },
  location: {
    about: 'clubs and restaurants, each served by one integration',
    examples: [
      'expediter location put --location club-1 --integration standard --settings club-1.json',
      'expediter location show club-1',
    ],
  },
  application: {
    about: "vendor applications: the platform's own ids and secrets at vendors, which locations refer to by name",
    examples: ['expediter application list'],
  },
  token: {
    about: "tokens in a location's webhook URL. A token is valid only for the integration that it was issued for",
    examples: ['expediter token issue --location club-1 --expires 90d', 'expediter token list --location club-1'],
  },
  'signal-token': {
    about: 'tokens with which an ordering platform without Pub/Sub sends signals by HTTP',
    examples: ['expediter signal-token issue --label "order app"', 'expediter signal-token list'],
  },
  audit: {
    about: 'what operators did and read, and what was refused',
    examples: ['expediter audit list --since 1d'],
  },
  webhook: {
    about: 'webhooks as they arrived, their outcomes, and replaying them',
    examples: ['expediter webhook list --outcome dropped --since 2h', 'expediter webhook replay --outcome dropped'],
  },
  live: {
    about: 'live messages: how they leave the service, and sending them again',
    examples: ['expediter live show', 'expediter live resend --since 2h'],
  },
  provider: {
    about: 'integrations, including those of PROVIDER_MODULES, and their POS systems',
    examples: [
      'expediter provider list',
      'expediter provider schema standard',
      'expediter provider check club-1',
      'expediter provider connect club-1',
    ],
  },
  member: {
    about: "what is stored about the platform's members",
    examples: ['expediter member erase member-42', 'expediter member erase - < member-id.txt'],
  },
  operator: {
    about: 'permissions: named tokens, the roles of people who sign in, and their sessions',
    more: `
Roles: viewer reads everything except member data. Every other role but integrator includes viewer. operator retries,
resolves, cancels, replays and pauses. member-data reads what a member ordered or wrote. integrator configures
locations, and reads only locations. admin manages permissions. operator, member-data, integrator and admin do not
include each other. With DATABASE_URL, these commands need no role, and the audit names the machine's user.
`,
    examples: [
      'expediter operator token issue --name nightly-report --role viewer --expires 90d',
      'expediter operator grant add --email anna@example.com --role operator,member-data --locations club-1',
    ],
  },
  'operator token': {
    about: 'named tokens, for programs, and for people if there is no sign-in by OIDC',
    examples: ['expediter operator token issue --name anna --role admin', 'expediter operator token list'],
  },
  'operator grant': {
    about: 'roles of people who sign in by OIDC, given to an address or to all members of a group',
    examples: [
      'expediter operator grant add --group kitchen-managers --role operator',
      'expediter operator grant list',
    ],
  },
  'operator session': {
    about: 'the browsers that are signed in at the console',
    examples: [
      'expediter operator session list',
      'expediter operator session revoke 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11',
    ],
  },
};

const STREAMS: Readonly<Record<string, Access>> = {
  'GET /orders/:serviceOrderId/live': { role: 'viewer', of: 'order' },
  'GET /live': { role: 'viewer', of: 'list' },
};

/** The path of the operator API for programs. The console has the same routes under its own path. */
export const API_PATH = '/v1';

/** Routes for programs that are not below API_PATH. The console does not have them. */
export const FOR_PROGRAMS: Readonly<Record<string, Access>> = {
  'GET /metrics': { role: 'metrics', of: 'all', whileAway: true },
  'GET /openapi.json': { role: 'any', of: 'none', whileAway: true },
};

/** The access rules of all routes, by method and path without prefix. The service does not start if one is missing. */
export const ACCESS: Readonly<Record<string, Access>> = {
  ...Object.fromEntries(OPERATIONS.map(({ api, access }) => [api.route, access])),
  ...STREAMS,
  ...FOR_PROGRAMS,
};
