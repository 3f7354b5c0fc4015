import type { Pool } from 'pg';
import { z } from 'zod';
import { Next } from '../domain/next.ts';
import { Instant } from '../domain/order.ts';
import { ACTION_OUTCOMES } from './audit.ts';
import { Actor } from './operator.ts';

const auditId = z.string().meta({ description: 'A number that grows with time.' });

/** An action that an operator did, or that was refused. */
export const ListedAction = z
  .object({
    auditId,
    at: Instant.meta({ description: 'When it began.' }),
    by: Actor,
    source: z.string().nullable().meta({ description: 'The address of the request. Null for the command line.' }),
    requestId: z.string().nullable(),
    action: z.string().meta({ examples: ['replay'] }),
    locationId: z.string().nullable(),
    serviceOrderId: z.string().nullable(),
    callOutCode: z.string().nullable().meta({ description: 'Of the order.' }),
    webhookId: z.string().nullable(),
    subject: z
      .string()
      .nullable()
      .describe('The id of a token, session or grant; the filter of a replay; the route that was refused.'),
    before: z.string().nullable().meta({ description: 'The state of the order or the location, or another code.' }),
    outcome: z.enum(ACTION_OUTCOMES).nullable().describe('Null if the action still runs, or if its process died.'),
    after: z.string().nullable(),
    endedAt: Instant.nullable(),
  })
  .meta({ id: 'ListedAction' });
export type ListedAction = z.infer<typeof ListedAction>;

export const ListedActions = z.object({ actions: z.array(ListedAction), next: Next });

/** An action as shown with an order or a location. */
export const RecordedAction = ListedAction.omit({ source: true, requestId: true }).meta({ id: 'RecordedAction' });
export type RecordedAction = z.infer<typeof RecordedAction>;

export const FILTER_OUTCOMES = [...ACTION_OUTCOMES, 'unknown'] as const;

export type AuditFilter = {
  /** The id or the name of the author. */
  actor?: string | undefined;
  action?: string | undefined;
  /** Only actions at one of these locations. If omitted, also actions without a location. */
  locations?: readonly string[] | undefined;
  serviceOrderId?: string | undefined;
  outcome?: (typeof FILTER_OUTCOMES)[number] | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
};

/** The most actions scanned for one page, however few match. */
const SCAN = 2_000;
/** The most actions shown with one order, the newest. */
const OF_ORDER = 200;
/** The most actions shown with one location, the newest. */
const OF_LOCATION = 50;

/**
 * Reads actions, newest first, before the action `before`. The cost of a page is bounded for any filter. So a page may
 * have fewer actions than `limit`, even none, and still a `next`.
 */
export async function readAudit(
  pool: Pool,
  filter: AuditFilter,
  page: { before?: string | undefined; limit: number },
): Promise<z.infer<typeof ListedActions>> {
  const { actor, action, locations, serviceOrderId, outcome, since, until } = filter;
  const one = locations?.length === 1 ? locations[0] : undefined;
  const candidates = [page.before ?? null, serviceOrderId ?? null, one ?? null, since ?? null, until ?? null];
  const { rows } = await pool.query<{ action: ListedAction }>(
    `SELECT ${ACT} AS action
     FROM (${CANDIDATES} LIMIT ${SCAN}) AS k ${OF_ID}
     WHERE ($4::timestamptz IS NULL OR a.at >= $4) AND ($5::timestamptz IS NULL OR a.at < $5)
       AND ($6::text[] IS NULL OR a.location_id = ANY ($6))
       AND ($7::text IS NULL OR $7 IN (a.actor_id, a.actor_name))
       AND ($8::text IS NULL OR a.action = $8)
       AND ($9::text IS NULL OR coalesce(o.outcome, 'unknown') = $9)
     ORDER BY k.audit_id DESC LIMIT $10::int`,
    [...candidates, locations ?? null, actor ?? null, action ?? null, outcome ?? null, page.limit],
  );
  const actions = rows.map(({ action }) => action);
  if (actions.length === page.limit) return { actions, next: actions.at(-1)?.auditId ?? null };
  const { rows: last } = await pool.query<{ next: string }>(
    `SELECT audit_id AS next FROM (${CANDIDATES} OFFSET ${SCAN - 1} LIMIT 1) AS k`,
    candidates,
  );
  return { actions, next: last[0]?.next ?? null };
}

export async function readActionsAt(pool: Pool, locationId: string): Promise<RecordedAction[]> {
  const { actions } = await readAudit(pool, { locations: [locationId] }, { limit: OF_LOCATION });
  return actions.map(toRecorded);
}

/** The actions that change whether and how the orders of a location are sent. */
const CHANGES = new Set(['put', 'change', 'connect', 'connect by link', 'disconnect', 'pause', 'resume']);

/** Reads what was changed at a location between two times: why a held order went through. */
export async function readChangesAt(
  pool: Pool,
  locationId: string,
  { since, until }: Pick<AuditFilter, 'since' | 'until'>,
): Promise<RecordedAction[]> {
  const { actions } = await readAudit(pool, { locations: [locationId], since, until }, { limit: OF_ORDER });
  return actions.filter(({ action, outcome }) => CHANGES.has(action) && outcome === 'done').map(toRecorded);
}

/**
 * Reads the newest actions about an order, oldest first.
 * @param webhookIds the order's webhooks, because reading or replaying one of them is an action about the order
 */
export async function readActionsAbout(
  pool: Pool,
  serviceOrderId: string,
  webhookIds: readonly string[],
): Promise<RecordedAction[]> {
  const { rows } = await pool.query<{ action: ListedAction }>(
    `WITH about AS (
       (SELECT audit_id FROM audit WHERE service_order_id = $1::text ORDER BY audit_id DESC LIMIT ${OF_ORDER})
       UNION
       SELECT a.audit_id
       FROM unnest($2::uuid[]) AS w (id) CROSS JOIN LATERAL (
         SELECT audit_id FROM audit WHERE webhook_id = w.id ORDER BY audit_id DESC LIMIT ${OF_ORDER}
       ) AS a
     )
     SELECT ${ACT} AS action
     FROM (SELECT audit_id FROM about ORDER BY audit_id DESC LIMIT ${OF_ORDER}) AS k ${OF_ID}
     ORDER BY k.audit_id`,
    [serviceOrderId, webhookIds],
  );
  return rows.map(({ action }) => toRecorded(action));
}

function toRecorded({ source: _source, requestId: _requestId, ...action }: ListedAction): RecordedAction {
  return action;
}

/** SQL for an action `a` and its end `o`. */
const ACT = `json_build_object(
  'auditId', a.audit_id::text, 'at', a.at,
  'by', json_build_object('kind', a.actor_kind, 'id', a.actor_id, 'name', a.actor_name),
  'source', a.source, 'requestId', a.request_id, 'action', a.action, 'locationId', a.location_id,
  'serviceOrderId', a.service_order_id,
  'callOutCode', (SELECT call_out_code FROM orders WHERE service_order_id = a.service_order_id), 'webhookId', a.webhook_id, 'subject', a.subject, 'before', a.before,
  'outcome', o.outcome, 'after', o.after, 'endedAt', o.at)`;

/** SQL for the action `a` of an id `k`, and its end `o`. `OFFSET 0` forces index lookups. */
const OF_ID = `
  CROSS JOIN LATERAL (SELECT * FROM audit WHERE audit_id = k.audit_id OFFSET 0) AS a
  LEFT JOIN LATERAL (SELECT outcome, after, at FROM audit_outcomes WHERE audit_id = k.audit_id OFFSET 0) AS o ON true`;

/**
 * SQL for the ids of candidates, newest first. It uses only columns of one index, so that Postgres reads that index and
 * does not scan all actions for one location. Ids grow with time, but not strictly, so each end of the time span gets
 * one more minute. The statement has no name, so Postgres plans it for its values and omits unused filters.
 */
const CANDIDATES = `
  SELECT audit_id FROM audit
  WHERE ($1::bigint IS NULL OR audit_id < $1)
    AND ($2::text IS NULL OR service_order_id = $2)
    AND ($2::text IS NOT NULL OR $3::text IS NULL OR location_id = $3)
    AND ($4::timestamptz IS NULL OR audit_id > coalesce(
          (SELECT audit_id FROM audit WHERE at < $4 - interval '1 minute' ORDER BY at DESC LIMIT 1), 0))
    AND ($5::timestamptz IS NULL OR audit_id < coalesce(
          (SELECT audit_id FROM audit WHERE at > $5 + interval '1 minute' ORDER BY at LIMIT 1), 9223372036854775807))
  ORDER BY audit_id DESC`;
