import type { Access, Operation } from './operation.ts';
import { LOCATION_OPERATIONS, TOKEN_OPERATIONS } from './location-operations.ts';
import { ORDER_OPERATIONS } from './order-operations.ts';
import { READING_OPERATIONS } from './reading-operations.ts';
import { WEBHOOK_OPERATIONS } from './webhook-operations.ts';

/** All that operators can do. */
export const OPERATIONS: readonly Operation[] = [
  ...ORDER_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...LOCATION_OPERATIONS,
  ...TOKEN_OPERATIONS,
  ...READING_OPERATIONS,
];

/** Routes that are no operations: streams, and what programs read. */
const BY_HAND: Readonly<Record<string, Access>> = {
  'GET /orders/:serviceOrderId/live': { role: 'viewer', of: 'order' },
  'GET /live': { role: 'viewer', of: 'list' },

  'GET /operators/sessions': { role: 'admin', of: 'all' },
  'POST /operators/sessions/:sessionId/revoke': { role: 'admin', of: 'all', does: 'revoke session' },
  'GET /operators/tokens': { role: 'admin', of: 'list' },
  'POST /operators/tokens': { role: 'admin', of: 'given', does: 'issue token' },
  'POST /operators/tokens/:tokenId/revoke': { role: 'admin', of: 'list', does: 'revoke token' },
  'GET /operators/grants': { role: 'admin', of: 'list' },
  'POST /operators/grants': { role: 'admin', of: 'given', does: 'give roles' },
  'POST /operators/grants/:grantId/remove': { role: 'admin', of: 'list', does: 'take roles' },

  'GET /metrics': { role: 'viewer', of: 'all', whileAway: true },
  'GET /openapi.json': { role: 'viewer', of: 'none', whileAway: true },
};

/** Every route of the operator API, at both doors. A route that is not here stops the start. */
export const ACCESS: Readonly<Record<string, Access>> = {
  ...Object.fromEntries(
    OPERATIONS.flatMap(({ api, ...operation }) => (api === undefined ? [] : [[api.route, accessOf(operation)]])),
  ),
  ...BY_HAND,
};

function accessOf({ role, of, whileAway, does, reveals }: Access): Access {
  return { role, of, ...(whileAway && { whileAway }), ...(does && { does }), ...(reveals && { reveals }) };
}
