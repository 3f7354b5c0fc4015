import type { Role } from '../../core/operators/operator.ts';

/** Who may use a route, and what is written down of it. */
export type Access = {
  role: Role;
  /**
   * What decides at which location the role is needed:
   *
   * - `order`, `webhook`, `location`: that of the one in the path. Of others' it is answered as if there were none
   * - `list`: the route itself leaves out what is elsewhere, by `locationsWithin`
   * - `given`: the body's `locations`: at each of them, and without them at all
   * - `all`: it is about all locations, and takes the role at all of them
   * - `none`: it is about no location
   */
  of: 'order' | 'webhook' | 'location' | 'list' | 'given' | 'all' | 'none';
  /** It asks Postgres nothing, so whom it was known to be open to may go on while that is away. */
  whileAway?: true;
  /** The act's name in the audit. Every route that changes something has one. */
  does?: string;
  /**
   * Member data in the answer: then it takes `member-data` as well, and the audit names it. The query is looked at
   * before it was validated and after that, when it has booleans.
   */
  reveals?: { did: string; when: (query: Readonly<Record<string, unknown>>) => boolean };
};

/** Every route of the operator API, at both doors. A route that is not here stops the start. */
export const ACCESS: Readonly<Record<string, Access>> = {
  'GET /orders': { role: 'viewer', of: 'list' },
  'GET /orders/:serviceOrderId': {
    role: 'viewer',
    of: 'order',
    reveals: { did: 'read contents', when: ({ contents }) => String(contents) === 'true' },
  },
  'GET /orders/:serviceOrderId/live': { role: 'viewer', of: 'order' },
  'POST /orders/:serviceOrderId/retry': { role: 'operator', of: 'order', does: 'retry' },
  'POST /orders/:serviceOrderId/resolve': { role: 'operator', of: 'order', does: 'resolve' },
  'POST /orders/:serviceOrderId/cancel': { role: 'operator', of: 'order', does: 'cancel' },
  'POST /orders/:serviceOrderId/cancel/conclude': { role: 'operator', of: 'order', does: 'conclude cancel' },
  'GET /live': { role: 'viewer', of: 'list' },

  'GET /webhooks': { role: 'viewer', of: 'list' },
  'GET /webhooks/:webhookId': {
    role: 'viewer',
    of: 'webhook',
    reveals: { did: 'read webhook', when: ({ contents }) => String(contents) !== 'false' },
  },
  'POST /webhooks/:webhookId/replay': { role: 'operator', of: 'webhook', does: 'replay' },
  'POST /webhooks/replay': { role: 'operator', of: 'list', does: 'replay many' },

  'GET /locations': { role: 'viewer', of: 'list' },
  'GET /locations/:locationId': { role: 'viewer', of: 'location' },
  'POST /locations/:locationId/check': { role: 'operator', of: 'location', does: 'check' },
  'POST /locations/:locationId/pause': { role: 'operator', of: 'location', does: 'pause' },
  'POST /locations/:locationId/resume': { role: 'operator', of: 'location', does: 'resume' },
  'POST /locations/:locationId/tokens/:tokenId/revoke': { role: 'admin', of: 'location', does: 'revoke' },

  'GET /operators/sessions': { role: 'admin', of: 'all' },
  'POST /operators/sessions/:sessionId/revoke': { role: 'admin', of: 'all', does: 'revoke session' },
  'GET /operators/tokens': { role: 'admin', of: 'list' },
  'POST /operators/tokens': { role: 'admin', of: 'given', does: 'issue token' },
  'POST /operators/tokens/:tokenId/revoke': { role: 'admin', of: 'list', does: 'revoke token' },
  'GET /operators/grants': { role: 'admin', of: 'list' },
  'POST /operators/grants': { role: 'admin', of: 'given', does: 'give roles' },
  'POST /operators/grants/:grantId/remove': { role: 'admin', of: 'list', does: 'take roles' },
  'GET /audit': { role: 'admin', of: 'list' },

  'GET /traffic': { role: 'viewer', of: 'list' },
  'GET /scorecards': { role: 'viewer', of: 'list' },
  'GET /spill': { role: 'viewer', of: 'none', whileAway: true },
  'GET /metrics': { role: 'viewer', of: 'all', whileAway: true },
  'GET /openapi.json': { role: 'viewer', of: 'none', whileAway: true },
  'GET /docs': { role: 'viewer', of: 'none', whileAway: true },
};
