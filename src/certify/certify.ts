import type { Pool } from 'pg';
import { attemptLimit } from '../core/domain/attempt-limit.ts';
import { beginTestOrder } from '../core/placements/begin-test-order.ts';
import { endTestOrder } from '../core/placements/end-test-order.ts';
import { why, type Why } from '../core/domain/placement-cause.ts';
import type { KitchenOrder } from '../core/domain/order.ts';
import type { Status } from '../core/domain/lifecycle.ts';
import { webhookPath } from '../core/domain/webhook-path.ts';
import type { AllowedHosts } from '../core/egress/allowed-hosts.ts';
import {
  WrongLocation,
  getLocation,
  refuseHosts,
  type Location,
  type OpenSettings,
} from '../core/locations/locations.ts';
import { makeToken } from '../core/domain/make-token.ts';
import type { SettingsKeys } from '../core/locations/settings-key.ts';
import { issueToken, revokeToken } from '../core/locations/webhook-tokens.ts';
import type { Certified } from './certified.ts';
import { certifyStatuses } from './certify-statuses.ts';
import { forgeOrder } from './forge-order.ts';
import { makeTestOrder, type TestContents } from './make-test-order.ts';
import { placeTwice, type PlaceDeps } from './place-twice.ts';
import { postToDoor, type Door } from './post-to-door.ts';
import { readTicket } from './read-ticket.ts';

export type CertifyDeps = PlaceDeps & {
  open: OpenSettings;
  keys: SettingsKeys;
  allowedHosts: AllowedHosts;
  publicUrl: string;
};

export type CertifyOptions = {
  locationId: string;
  contents: TestContents;
  /** Those that the POS has to send, in their order. */
  statuses: readonly Status[];
  /** Whether the POS sends a webhook again that was not answered 200. If not, none is refused. */
  repeats: boolean;
  limits: Limits;
  /** Aborts it. The test order is ended all the same. */
  signal: AbortSignal;
};

/** How long is waited, in milliseconds. */
export type Limits = {
  /** For the answer to an order; the service's own by default. */
  answerMs?: number;
  /** For each status. */
  statusMs: number;
  /** For a status once something else has come. */
  graceMs: number;
};

/** Told while it goes on: what is wanted of people, and what was found. */
export type Tell = { wants(what: string): void; found(certified: Certified): void };

export type Certification = { order: KitchenOrder | undefined; checks: Certified[] };

const LABEL = 'certify';
/** The longest run, after which its token lets nobody in. */
const TOKEN_MS = 24 * 3_600_000;
/** What two processes' clocks may be apart, each by Postgres's: longer than the answer by which they set it. */
const CLOCKS_MS = 5_000;
const DEADLINE_S = 1_800;
const NEVER_SENT = why({ code: 'pos_unreachable' });

/**
 * Drives a location through its life with a test order, which its POS really gets. The service has to run: the POS's
 * webhooks come to its door, and are looked for in Postgres.
 * @throws WrongLocation if there is no such location
 */
export async function certify(deps: CertifyDeps, about: CertifyOptions, tell: Tell): Promise<Certification> {
  const { pool, publicUrl } = deps;
  const { locationId } = about;
  const checks: Certified[] = [];
  const report = (certified: Certified): void => {
    checks.push(certified);
    tell.found(certified);
  };
  const location = await openLocation(deps, locationId, report);
  if (location === undefined) return { order: undefined, checks };
  const { integration } = location;

  const { tokenId, token } = await issueToken(pool, {
    locationId,
    label: LABEL,
    expiresAt: new Date(deps.now().getTime() + TOKEN_MS),
  });
  try {
    const door: Door = { publicUrl, integration, locationId, token };
    report(await knock(door));
    if (checks.at(-1)?.state === 'failed') return { order: undefined, checks };
    const order = await run(deps, { ...about, location, door }, { wants: tell.wants, found: report });
    return { order, checks };
  } finally {
    await revokeToken(pool, tokenId);
  }
}

async function openLocation(
  { pool, open, allowedHosts }: CertifyDeps,
  locationId: string,
  report: Tell['found'],
): Promise<Location | undefined> {
  const stored = await getLocation(pool, locationId);
  try {
    const { integration } = stored;
    const location = { locationId, integration, ...(await open(stored)) };
    refuseHosts(location.settings, location.provider, allowedHosts);
    report({ check: 'settings', state: 'ok', found: `can be used; its POS is ${integration}` });
    return location;
  } catch (error) {
    if (!(error instanceof WrongLocation)) throw error;
    report({
      check: 'settings',
      state: 'failed',
      found: error.message,
      expected: `settings that ${stored.integration} can use`,
      toDo: `put them again: expediter location put --location ${locationId}`,
    });
    return undefined;
  }
}

/** Asks whether PUBLIC_URL leads to the service, with a token that nobody has. */
async function knock(door: Door): Promise<Certified> {
  const check = 'wrong token';
  const request = `POST ${door.publicUrl}${webhookPath(door)}, with a token that was never issued`;
  const answer = await postToDoor({ ...door, token: makeToken('exw_') }, { headers: {}, body: Buffer.from('{}') });
  if (typeof answer !== 'string' && answer.status === 401)
    return { check, state: 'ok', request, found: 'answered 401' };
  return {
    check,
    state: 'failed',
    request,
    found: typeof answer === 'string' ? answer : `answered ${answer.status}`,
    expected: '401: the service itself answers at PUBLIC_URL',
    toDo: 'start the service, or set PUBLIC_URL to where the POS reaches it; expediter doctor --only public-url says more',
  };
}

async function run(
  deps: CertifyDeps,
  about: CertifyOptions & { location: Location; door: Door },
  tell: Tell,
): Promise<KitchenOrder> {
  const { pool } = deps;
  const { location, limits } = about;
  const since = new Date(deps.now().getTime() - CLOCKS_MS);
  const made = makeTestOrder(location.locationId, about.contents, deps.now());
  const { claim, order } = await beginTestOrder(pool, made, DEADLINE_S);
  let failed: Why = NEVER_SENT;
  try {
    const answerMs = limits.answerMs ?? attemptLimit(location.provider) * 1_000;
    const placed = await placeTwice(deps, location, order, { claim, answerMs, report: tell.found });
    if ('why' in placed) {
      failed = placed.why;
      return order;
    }
    await certifyStatuses(deps, { ...about, order, since, ticketIds: placed.ids }, tell);
    tell.found(await namesTicket(pool, location.provider, order, placed));
    // Behind the order's own webhooks, which those of a ticket that should not be cannot disturb any more.
    const forged = await forgeOrder(deps, location, order, answerMs);
    if (forged !== undefined) tell.found(forged);
    const read = await readTicket(deps, location, order);
    if (read !== undefined) tell.found(read);
    return order;
  } finally {
    await endTestOrder(pool, claim, failed);
  }
}

/** Whether operators can find the ticket at the POS, and it is no other order's. */
async function namesTicket(
  pool: Pool,
  { builtForUs }: Location['provider'],
  { serviceOrderId, locationId }: KitchenOrder,
  { ids, lastExchange }: { ids: readonly string[]; lastExchange: string | undefined },
): Promise<Certified> {
  const check = 'ticket id';
  const { rows } = await pool.query<{ id: string | null; takenId: string | null; namedIds: string[] }>(
    `SELECT o.provider_order_id AS id,
            ARRAY(SELECT DISTINCT e.provider_order_id FROM status_events e
                  WHERE e.service_order_id = $1::text AND e.provider_order_id IS NOT NULL ORDER BY 1) AS "namedIds",
            (SELECT t.provider_order_id FROM provider_orders t
             WHERE t.location_id = $2::text AND t.integration = o.integration
               AND t.provider_order_id = ANY ($3::text[]) AND t.service_order_id <> $1::text LIMIT 1) AS "takenId"
     FROM orders o WHERE o.service_order_id = $1::text`,
    [serviceOrderId, locationId, ids],
  );
  const { id = null, takenId = null, namedIds = [] } = rows[0] ?? {};
  const request = lastExchange === undefined ? {} : { request: lastExchange };
  if (takenId !== null) {
    return {
      check,
      state: 'failed',
      found: `the id "${takenId}" is another order's, which this POS had before`,
      ...request,
      expected: 'an id that no other ticket of this restaurant has, or ever had',
      toDo:
        'answer with the id by which the POS stores the ticket, and not with a number that begins anew each day' +
        (builtForUs === undefined ? '' : '. If your test database was emptied: delete .certify, or use --dir'),
    };
  }
  if (builtForUs !== undefined && namedIds.length > 1) {
    return {
      check,
      state: 'failed',
      found: `webhooks named the order by ${namedIds.length} ids: ${namedIds.map((each) => `"${each}"`).join(', ')}`,
      expected: 'one ticket for an order, and its id in each webhook',
      toDo: 'see whether the kitchen has two tickets of it: store the id of each order with its ticket',
    };
  }
  if (id !== null) return { check, state: 'ok', found: `the POS calls the order "${id}"` };
  return {
    check,
    state: 'failed',
    found: 'neither the answer to the order nor a webhook named the id of the ticket at the POS',
    ...request,
    expected: 'an id by which people find the ticket at the till',
    toDo: 'answer the order with it',
  };
}
