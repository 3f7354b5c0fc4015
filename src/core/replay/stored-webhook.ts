import type { Pool } from 'pg';
import { z } from 'zod';
import { ReplayCause } from '../domain/webhook-cause.ts';
import { PLACES, type KeyedWebhook, type WebhookKey } from './list-webhooks.ts';

/** A webhook as it is kept. */
export type StoredWebhook = Omit<KeyedWebhook, 'bytes'> & {
  /** Of a replay, when the webhook itself came: a replay's `receivedAt` says nothing about the POS's clock. */
  firstReceivedAt: Date;
  /** Without `authorization` and `cookie`. */
  headers: Record<string, string>;
  /** Those two and the request target; of a dropped one only. */
  sealed: string | null;
  body: Buffer;
  /** Whose order was erased, and its body and headers with it. */
  erased: boolean;
  /** A replay that was dropped keeps none of these, and the webhook that does is not kept any more. */
  gone: boolean;
};

/** Why a webhook cannot be replayed: a sentence for people, and the same as data. */
export const Refusal = z.object({ refused: z.string(), cause: ReplayCause });
export type Refusal = z.infer<typeof Refusal>;

/** Of one that is `gone`. */
export const GONE: Refusal = {
  refused: 'the webhook that it replays, with its body, is not kept any more',
  cause: { code: 'not_kept' },
};

/** An id tells the time by the clock of the machine that gave it; where that is off by more, every day is looked at. */
const DAYS_OFF = [1, 100_000];
const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Finds a webhook by its id alone, by way of the primary key. @returns undefined when there is none */
export async function findWebhook(pool: Pool, webhookId: string): Promise<WebhookKey | undefined> {
  const [, high, low] = UUID_V7.exec(webhookId) ?? [];
  if (high === undefined || low === undefined) return undefined;
  const seconds = Number.parseInt(high + low, 16) / 1000;
  for (const days of DAYS_OFF) {
    const { rows } = await pool.query<WebhookKey>(
      `WITH RECURSIVE days AS (
         SELECT k.first + i AS day
         FROM (SELECT greatest(min(day), (to_timestamp($2::float8) AT TIME ZONE 'UTC')::date - $3::int) AS first,
                      least(max(day), (to_timestamp($2::float8) AT TIME ZONE 'UTC')::date + $3::int) AS last
               FROM webhooks HAVING min(day) IS NOT NULL) AS k,
              generate_series(0, k.last - k.first) AS i
       ), ${PLACES}
       SELECT d.*
       FROM place,
       LATERAL (SELECT d.day::text, d.location_id AS "locationId", d.id AS "webhookId"
                FROM webhooks d
                WHERE d.day = place.day AND d.location_id = place.location_id AND d.id = $1::uuid
                LIMIT 1) AS d`,
      [webhookId, seconds, days],
    );
    if (rows[0] !== undefined) return rows[0];
  }
  return undefined;
}

/** A replay that was dropped again has kept no contents, which would outlive the webhook's: it is read with those. */
export async function readWebhook(pool: Pool, key: WebhookKey): Promise<StoredWebhook | undefined> {
  const { rows } = await pool.query<StoredWebhook>(
    `SELECT d.day::text, d.location_id AS "locationId", d.id AS "webhookId", d.integration,
            d.received_at AS "receivedAt", d.replay_of AS "replayOf",
            coalesce(d.first_received_at, d.received_at) AS "firstReceivedAt", coalesce(c.headers, '{}') AS headers,
            c.sealed, coalesce(c.body, '') AS body, coalesce(c.truncated, d.truncated) AS truncated, d.events,
            d.outcome, d.reason, d.cause, coalesce(c.body = '' AND c.headers = '{}', false) AS erased, c.body IS NULL AS gone
     FROM (SELECT *, replay_of IS NOT NULL AND outcome = 'dropped' AS hollow FROM webhooks
           WHERE day = $1::date AND location_id = $2 AND id = $3::uuid) AS d
     LEFT JOIN LATERAL (
       SELECT * FROM webhooks
       WHERE day = CASE WHEN hollow THEN (d.first_received_at AT TIME ZONE 'UTC')::date ELSE d.day END
         AND location_id = d.location_id AND id = CASE WHEN hollow THEN d.replay_of ELSE d.id END
       LIMIT 1
     ) AS c ON true`,
    [key.day, key.locationId, key.webhookId],
  );
  return rows[0];
}
