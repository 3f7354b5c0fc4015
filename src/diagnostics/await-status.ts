import { isObject } from '../core/domain/json-text.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { STATUSES, rankOf, type Status } from '../core/domain/lifecycle.ts';
import type { WebhookOutcome } from '../core/domain/webhook.ts';
import type { SettingsKeys } from '../core/locations/settings-key.ts';
import { listWebhooks, type WebhookKey } from '../core/replay/list-webhooks.ts';
import { readWebhook, type StoredWebhook } from '../core/replay/stored-webhook.ts';

const PAUSE_MS = 200;
/** Outcomes of webhooks that changed no order. */
const IN_VAIN: readonly WebhookOutcome[] = ['dropped', 'ignored', 'parked', 'unmatched'];
/** Maximum number of webhooks read. A location sends fewer during the minutes of a test. */
const MOST = 200;
/** Maximum error of the time in a webhook id, which comes from the clock of the process that stored the webhook. */
const CLOCKS_MS = 60_000;

/** A status of the order. A webhook reported it, or the service found it by polling the POS. */
type ArrivedStatus = {
  status: Status;
  nativeStatus: string;
  outcome: WebhookOutcome;
  webhookId: string;
  /** True if the service found the status by polling the POS, and no webhook reported it. */
  polled: boolean;
  /** True if the webhook was spilled: it was answered 200, and never 500. */
  spilled: boolean;
};

/** Where to find webhooks, and how to recognize the webhooks about the order. */
export type Sought = {
  pool: Pool;
  keys: SettingsKeys;
  locationId: string;
  since: Date;
  serviceOrderId: string;
  /** All ids that the POS has named for the ticket so far. */
  ticketIds: readonly string[];
  /** Ids of the webhooks that certify itself sent. */
  ours: ReadonlySet<string>;
};

export type Awaited =
  | { came: ArrivedStatus }
  /** No webhook reported the status. The service found it by polling the POS. */
  | { polled: ArrivedStatus }
  /** The status came after a higher status, `first`. */
  | { behind: ArrivedStatus; first: ArrivedStatus | undefined }
  /** Only a higher status came. */
  | { skippedFor: ArrivedStatus }
  /** A webhook about the order came, but changed nothing. */
  | { inVain: StoredWebhook }
  | { silent: true };

/**
 * Waits for a status of an order. If a higher status comes, or a webhook that changes nothing, it waits `graceMs` more.
 * @param about.until when the waiting ends at the latest, as `performance.now()` milliseconds
 * @param about.known ids of earlier webhooks that changed nothing; this function adds new ones
 */
export async function awaitStatus(
  sought: Sought,
  status: Status,
  about: { until: () => number; graceMs: number; known: Set<string>; signal: AbortSignal },
): Promise<Awaited> {
  let otherSince: number | undefined;
  for (;;) {
    about.signal.throwIfAborted();
    const isOver = performance.now() > Math.min(about.until(), (otherSince ?? Infinity) + about.graceMs);
    const statuses = await readStatuses(sought.pool, sought.serviceOrderId);
    const came = statuses.find((each) => each.status === status && each.outcome === 'applied');
    const above = statuses.find((each) => isAbove(each, status) && each.outcome === 'applied');
    const inVain = (await findInVain(sought)).filter(({ webhookId }) => !about.known.has(webhookId));
    if (came !== undefined) {
      // Earlier webhooks did not prevent this status, so later checks ignore them. Webhook ids are in order of arrival.
      for (const { webhookId } of inVain) if (webhookId < came.webhookId) about.known.add(webhookId);
      return came.polled ? { polled: came } : { came };
    }
    const behind = statuses.find((each) => each.status === status && each.outcome === 'stale');
    if (behind !== undefined) return { behind, first: above };
    if (isOver) {
      const last = inVain.at(-1);
      for (const { webhookId } of inVain) about.known.add(webhookId);
      if (last !== undefined) return { inVain: last };
      return above === undefined ? { silent: true } : { skippedFor: above };
    }
    if (above !== undefined || inVain.length > 0) otherSince ??= performance.now();
    await sleep(PAUSE_MS, undefined, { signal: about.signal });
  }
}

/** Reads the statuses that webhooks or polling reported for an order, in order of arrival. */
export async function readStatuses(pool: Pool, serviceOrderId: string): Promise<ArrivedStatus[]> {
  const { rows } = await pool.query<ArrivedStatus>(
    `SELECT e.status, e.native_status AS "nativeStatus", e.outcome, e.webhook_id AS "webhookId",
            coalesce(w.polled, false) AS polled, w.first_received_at IS NOT NULL AND w.replay_of IS NULL AS spilled
     FROM orders o JOIN status_events e USING (service_order_id)
     LEFT JOIN LATERAL (
       SELECT * FROM webhooks
       WHERE day BETWEEN (e.recorded_at AT TIME ZONE 'UTC')::date - 1 AND (e.recorded_at AT TIME ZONE 'UTC')::date
         AND location_id = o.location_id AND id = e.webhook_id
       LIMIT 1
     ) AS w ON true
     WHERE o.service_order_id = $1::text AND e.webhook_id IS NOT NULL
     ORDER BY e.event_id`,
    [serviceOrderId],
  );
  return rows;
}

function isAbove({ status }: ArrivedStatus, than: Status): boolean {
  return STATUSES.includes(status) && rankOf(status) > rankOf(than);
}

/** Finds webhooks of the location that seem to be about the order, and changed nothing. */
async function findInVain(sought: Sought): Promise<StoredWebhook[]> {
  const { pool, keys, locationId, since, ours } = sought;
  const page = { oldestFirst: true, after: justBefore(sought), limit: MOST };
  const { webhooks } = await listWebhooks(pool, { locations: [locationId], since }, page);
  const found: StoredWebhook[] = [];
  for (const webhook of webhooks) {
    if (webhook.polled || !IN_VAIN.includes(webhook.outcome) || ours.has(webhook.webhookId)) continue;
    const stored = await readWebhook({ pool, keys }, webhook);
    // A parked webhook's POS id is unknown. Only a very recent order has such an id, so we assume the test order.
    if (stored !== undefined && (webhook.outcome === 'parked' || names(stored, sought))) found.push(stored);
  }
  return found;
}

/** Makes the key at which the list of webhooks starts, so that older webhooks are not read. */
function justBefore({ locationId, since }: Sought): WebhookKey {
  const from = new Date(since.getTime() - CLOCKS_MS);
  const time = from.getTime().toString(16).padStart(12, '0');
  const webhookId = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
  return { day: from.toISOString().slice(0, 10), locationId, webhookId };
}

/** Finds another location that got a webhook about the order. It reads webhooks of all locations, so it is slow. */
export async function findElsewhere(sought: Sought): Promise<string | undefined> {
  const { pool, keys, locationId, since } = sought;
  for (const outcome of ['unmatched', 'dropped'] as const) {
    const { webhooks } = await listWebhooks(pool, { since, outcome }, { oldestFirst: false, limit: MOST });
    for (const webhook of webhooks) {
      if (webhook.locationId === locationId) continue;
      const stored = await readWebhook({ pool, keys }, webhook);
      // Another location's POS may have a ticket with the same number.
      if (stored !== undefined && names(stored, { ...sought, ticketIds: [] })) return webhook.locationId;
    }
  }
  return undefined;
}

/** Whether a body contains our order id anywhere, or a ticket id as a whole JSON value (ticket ids may be short). */
function names({ body }: StoredWebhook, { serviceOrderId, ticketIds }: Sought): boolean {
  const text = body.toString();
  if (text.includes(serviceOrderId)) return true;
  try {
    return holds(JSON.parse(text), ticketIds);
  } catch {
    // It is not JSON, or nested too deep.
    return false;
  }
}

function holds(json: unknown, ids: readonly string[]): boolean {
  if (isObject(json)) return Object.values(json).some((value) => holds(value, ids));
  return ids.includes(String(json));
}
