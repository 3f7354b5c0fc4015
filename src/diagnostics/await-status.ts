import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { STATUSES, rankOf, type Status } from '../core/domain/lifecycle.ts';
import type { WebhookOutcome } from '../core/domain/webhook.ts';
import type { SettingsKeys } from '../core/locations/settings-key.ts';
import { listWebhooks, type WebhookKey } from '../core/replay/list-webhooks.ts';
import { readWebhook, type StoredWebhook } from '../core/replay/stored-webhook.ts';

/** Pause between two looks. */
const LOOK_MS = 200;
/** Outcomes of webhooks that reached no order. */
const IN_VAIN: readonly WebhookOutcome[] = ['dropped', 'ignored', 'parked', 'unmatched'];
/** More than a location sends in the minutes of a test. */
const MOST = 200;
/** The time in an id is by a machine's own clock. */
const MACHINES_MS = 60_000;

/** A status of the order that came in a webhook. */
type ArrivedStatus = {
  status: Status;
  nativeStatus: string;
  outcome: WebhookOutcome;
  webhookId: string;
  /** True if no webhook brought it: the service asked the POS. */
  polled: boolean;
  /** True if it waited in the spill, and so was not answered 500. */
  spilled: boolean;
};

/** Where webhooks are looked for, and what tells that one is about the order. */
export type Sought = {
  pool: Pool;
  keys: SettingsKeys;
  locationId: string;
  since: Date;
  serviceOrderId: string;
  /** The POS's own, as far as it has named any. */
  ticketIds: readonly string[];
  /** Those that certify itself sent. */
  ours: ReadonlySet<string>;
};

export type Awaited =
  | { came: ArrivedStatus }
  /** No webhook brought it, and the service asked the POS. */
  | { polled: ArrivedStatus }
  /** It came behind a higher one. */
  | { behind: ArrivedStatus; first: ArrivedStatus | undefined }
  /** Only a higher one came. */
  | { skippedFor: ArrivedStatus }
  /** Something came, and moved nothing. */
  | { inVain: StoredWebhook }
  | { silent: true };

/**
 * Waits for a status of an order. Once something else has come, it waits for a short while only.
 * @param about.until when the waiting ends, in milliseconds by the monotonic clock
 * @param about.graceMs how much longer, once something else has come
 * @param about.known webhooks that came in vain before
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
      // What came before it was no obstacle. Ids are in the order of their arrival.
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
    await sleep(LOOK_MS, undefined, { signal: about.signal });
  }
}

/** Reads the statuses that POS and bridge have sent of an order, in their order. */
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

/** Whether the POS said more than this status. */
function isAbove({ status }: ArrivedStatus, than: Status): boolean {
  return STATUSES.includes(status) && rankOf(status) > rankOf(than);
}

/** Finds webhooks of the location that are about the order, as far as anybody can tell, and moved nothing. */
async function findInVain(sought: Sought): Promise<StoredWebhook[]> {
  const { pool, keys, locationId, since, ours } = sought;
  const page = { oldestFirst: true, after: justBefore(sought), limit: MOST };
  const { webhooks } = await listWebhooks(pool, { locations: [locationId], since }, page);
  const found: StoredWebhook[] = [];
  for (const webhook of webhooks) {
    if (webhook.polled || !IN_VAIN.includes(webhook.outcome) || ours.has(webhook.webhookId)) continue;
    const stored = await readWebhook({ pool, keys }, webhook);
    // A parked one names an id that only an order of this moment can have.
    if (stored !== undefined && (webhook.outcome === 'parked' || names(stored, sought))) found.push(stored);
  }
  return found;
}

/** Where a list begins, so that nothing older has to be read. */
function justBefore({ locationId, since }: Sought): WebhookKey {
  const from = new Date(since.getTime() - MACHINES_MS);
  const time = from.getTime().toString(16).padStart(12, '0');
  const webhookId = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
  return { day: from.toISOString().slice(0, 10), locationId, webhookId };
}

/** Finds another location at which a webhook about the order came. Looked for once: it reads those of all locations. */
export async function findElsewhere(sought: Sought): Promise<string | undefined> {
  const { pool, keys, locationId, since } = sought;
  for (const outcome of ['unmatched', 'dropped'] as const) {
    const { webhooks } = await listWebhooks(pool, { since, outcome }, { oldestFirst: false, limit: MOST });
    for (const webhook of webhooks) {
      if (webhook.locationId === locationId) continue;
      const stored = await readWebhook({ pool, keys }, webhook);
      // Another location's POS has tickets of the same number.
      if (stored !== undefined && names(stored, { ...sought, ticketIds: [] })) return webhook.locationId;
    }
  }
  return undefined;
}

/** Whether a body has our id anywhere, or one of the POS's, which may be short, as a value. */
function names({ body }: StoredWebhook, { serviceOrderId, ticketIds }: Sought): boolean {
  const text = body.toString();
  if (text.includes(serviceOrderId)) return true;
  try {
    return holds(JSON.parse(text), ticketIds);
  } catch {
    return false;
  }
}

function holds(json: unknown, ids: readonly string[]): boolean {
  if (typeof json === 'object' && json !== null) return Object.values(json).some((value) => holds(value, ids));
  return ids.includes(String(json));
}
