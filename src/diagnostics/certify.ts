import { attemptLimit } from '../core/domain/timing.ts';
import { makeToken } from '../core/domain/make-token.ts';
import { webhookPath } from '../core/domain/paths.ts';
import type { KitchenOrder } from '../core/domain/order.ts';
import { problemOf } from '../core/domain/explain-cause.ts';
import type { Problem } from '../core/domain/placement-cause.ts';
import type { Location } from '../core/locations/locations.ts';
import { issueToken, revokeToken } from '../core/locations/webhook-tokens.ts';
import { beginTestOrder, endTestOrder } from '../core/test-orders/test-order.ts';
import { certifyStatuses } from './certify-statuses.ts';
import { forgeOrder, namesTicket, readTicket } from './check-ticket.ts';
import { failed, ok, type Check } from './check.ts';
import { placeTwice } from './place-twice.ts';
import { openLocation } from './send-test-order.ts';
import { postWebhook, type Endpoint } from './send-again.ts';
import { makeTestOrder, type CertifyDeps, type CertifyOptions, type Progress } from './test-run.ts';

export type Certification = { order: KitchenOrder | undefined; checks: Check[] };

const LABEL = 'certify';
/** The run's webhook token expires after this time. A run is shorter. */
const TOKEN_MS = 24 * 3_600_000;
/** Maximum difference between the clocks of two processes. Postgres sets each, with the error of one round trip. */
const CLOCKS_MS = 5_000;
const DEADLINE_S = 1_800;
const NEVER_SENT = problemOf({ code: 'pos_unreachable' });

/**
 * Sends a real test order to a location's POS, and follows the order to its end. The service must run, because it
 * receives the webhooks of the POS. This function reads them from Postgres.
 * @throws WrongLocation if there is no such location
 */
export async function certify(deps: CertifyDeps, about: CertifyOptions, progress: Progress): Promise<Certification> {
  const { pool, publicUrl } = deps;
  const { locationId } = about;
  const checks: Check[] = [];
  const report = (check: Check): void => {
    checks.push(check);
    progress.found(check);
  };
  const location = await openLocation(deps, locationId);
  if ('problem' in location) {
    const { problem, toDo } = location;
    report(failed('settings', problem, toDo, { expected: 'settings that its integration can use' }));
    return { order: undefined, checks };
  }
  const { integration } = location;
  report(ok('settings', `can be used; its POS is ${integration}`));

  const { tokenId, token } = await issueToken(pool, {
    locationId,
    label: LABEL,
    expiresAt: new Date(deps.now().getTime() + TOKEN_MS),
  });
  try {
    const endpoint: Endpoint = { publicUrl, integration, locationId, token };
    report(await probeUrl(endpoint));
    if (checks.at(-1)?.state === 'failed') return { order: undefined, checks };
    const order = await run(deps, { ...about, location, endpoint }, { wants: progress.wants, found: report });
    return { order, checks };
  } finally {
    await revokeToken(pool, tokenId);
  }
}

/** Checks whether PUBLIC_URL leads to the service: a request with an unknown token must be answered 401. */
async function probeUrl(endpoint: Endpoint): Promise<Check> {
  const check = 'wrong token';
  const request = `POST ${endpoint.publicUrl}${webhookPath(endpoint)}, with a token that was never issued`;
  const answer = await postWebhook({ ...endpoint, token: makeToken('exw_') }, { headers: {}, body: Buffer.from('{}') });
  if (typeof answer !== 'string' && answer.status === 401) return ok(check, 'answered 401', { request });
  const toDo =
    'start the service, or set PUBLIC_URL to where the POS reaches it; expediter doctor --only public-url shows more';
  const expected = '401, which shows that the service itself answers at PUBLIC_URL';
  const found = typeof answer === 'string' ? answer : `answered ${answer.status}`;
  return failed(check, found, toDo, { request, expected });
}

async function run(
  given: CertifyDeps,
  about: CertifyOptions & { location: Location; endpoint: Endpoint },
  progress: Progress,
): Promise<KitchenOrder> {
  const deps = { ...given, stopping: about.signal };
  const { pool } = deps;
  const { location, limits } = about;
  const since = new Date(deps.now().getTime() - CLOCKS_MS);
  about.signal.throwIfAborted();
  const made = makeTestOrder(location.locationId, about.contents, deps.now());
  const { claim, order } = await beginTestOrder(pool, made, DEADLINE_S);
  let failed: Problem = NEVER_SENT;
  try {
    const answerMs = limits.answerMs ?? attemptLimit(location.provider) * 1_000;
    const placed = await placeTwice(deps, location, order, { claim, answerMs, report: progress.found });
    if ('problem' in placed) {
      failed = placed.problem;
      return order;
    }
    await certifyStatuses(deps, { ...about, order, since, ticketIds: placed.ids }, progress);
    progress.found(await namesTicket(pool, location.provider, order, placed));
    // The forged order is sent last, so that webhooks about it cannot disturb the checks of the test order.
    const forged = await forgeOrder(deps, location, order, answerMs);
    if (forged !== undefined) progress.found(forged);
    const read = await readTicket(deps, location, order);
    if (read !== undefined) progress.found(read);
    return order;
  } finally {
    await endTestOrder(pool, claim, failed);
  }
}
