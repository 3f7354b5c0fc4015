import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import type { Pool } from 'pg';
import { z } from 'zod';
import { toCauseText } from '../domain/cause-text.ts';
import { ReplayCause } from '../domain/webhook-cause.ts';
import {
  keyIdOf,
  SealedElsewhere,
  type SettingsKeys,
  unsealWebhook,
  type WebhookSecrets,
} from '../locations/settings-key.ts';
import { ORDER_OF, PLACES, type KeyedWebhook, type WebhookKey } from './list-webhooks.ts';

export type StoredWebhook = Omit<KeyedWebhook, 'bytes'> & {
  /** When the original webhook arrived. Signatures are verified as at this time, also in a replay. */
  firstReceivedAt: Date;
  /** The headers that are stored in clear. */
  headers: Record<string, string>;
  secrets?: WebhookSecrets;
  /** Why the sealed parts cannot be decrypted. */
  locked?: Refusal;
  /** Empty if it is sealed and cannot be decrypted. */
  body: Buffer;
  /** True if its body and headers were erased with its order. */
  erased: boolean;
  /** True for a dropped replay whose original webhook is deleted. Such a replay has no contents of its own. */
  gone: boolean;
};

/** Why a webhook cannot be replayed: a sentence for people and a cause for programs. */
export const Refusal = z.object({ refused: z.string(), cause: ReplayCause });
export type Refusal = z.infer<typeof Refusal>;

export const GONE: Refusal = {
  refused: 'the webhook that it replays is no longer stored',
  cause: { code: 'not_stored' },
};

/** Days to search around the time in an id. A machine's clock may be wrong, so the second search is of all days. */
const DAYS_OFF = [1, 100_000];
const decompress = promisify(zstdDecompress);

const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Finds a webhook by its id alone, through the primary key. @returns undefined if there is none */
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

/** Reads a webhook. A dropped replay has no contents of its own, so it is read with the contents of its original. */
export async function readWebhook(
  { pool, keys }: { pool: Pool; keys: SettingsKeys },
  key: WebhookKey,
): Promise<StoredWebhook | undefined> {
  const { rows } = await pool.query<StoredWebhook & { sealed: string | null; keptAs: string; zstdOf: number | null }>(
    `SELECT d.day::text, d.location_id AS "locationId", d.id AS "webhookId", d.integration,
            d.received_at AS "receivedAt", d.replay_of AS "replayOf",
            coalesce(d.first_received_at, d.received_at) AS "firstReceivedAt", coalesce(c.headers, '{}') AS headers,
            c.sealed, c.id AS "keptAs", coalesce(c.body, '') AS body, c.zstd_of AS "zstdOf",
            coalesce(c.truncated, d.truncated) AS truncated,
            d.polled, d.events, d.outcome, d.reason, d.cause, ${ORDER_OF},
            coalesce(c.body = '' AND c.headers = '{}', false) AS erased, c.body IS NULL AS gone
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
  const [row] = rows;
  if (row === undefined) return undefined;
  const { sealed, keptAs, zstdOf, ...kept } = row;
  const isCompressed = zstdOf !== null && kept.body.length > 0;
  const stored = isCompressed ? { ...kept, body: await decompress(kept.body, { maxOutputLength: zstdOf }) } : kept;
  if (sealed === null) return stored;
  try {
    const secrets = await unsealWebhook(keys, { locationId: key.locationId, webhookId: keptAs }, sealed);
    const { body } = secrets;
    return { ...stored, secrets, ...(body !== undefined && { body: Buffer.from(body, 'base64') }) };
  } catch (error) {
    return { ...stored, locked: whyLocked(error as Error, sealed) };
  }
}

function whyLocked(error: Error, sealed: string): Refusal {
  return {
    refused: `its encrypted parts cannot be decrypted: ${error.message}`,
    cause:
      error instanceof SealedElsewhere
        ? { code: 'sealed_for_another' }
        : { code: 'credentials_sealed', keyId: toCauseText(keyIdOf(sealed)) },
  };
}
