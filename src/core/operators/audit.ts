import { isObject } from '../domain/json-text.ts';
import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import type { Actor } from './operator.ts';

/** An operator's action. It holds only our own ids and codes, never member data or a secret. */
export type Action = {
  action: string;
  locationId?: string | null | undefined;
  /** Not recorded if no signal ever named it, because an operator may have typed any text. */
  serviceOrderId?: string | undefined;
  webhookId?: string | undefined;
  /** The id of a token, session or grant, or the filter of a replay. */
  subject?: string | undefined;
  /** By default the state of the order, or else of the location. */
  before?: string | undefined;
  /** The address of the request. */
  source?: string | undefined;
  requestId?: string | undefined;
  /** Gets a line when the action has ended. A command passes no log. */
  log?: Log | undefined;
};

export const ACTION_OUTCOMES = ['done', 'refused', 'failed'] as const;
type Ended = { outcome: (typeof ACTION_OUTCOMES)[number]; after?: string | undefined };

/** SQL for the state of the order or the location of an action `a`, as a code. */
const STATE = `CASE
  WHEN a.subject IS NOT NULL OR a.webhook_id IS NOT NULL THEN NULL
  WHEN a.service_order_id IS NOT NULL THEN
    (SELECT concat_ws('/', p.state, c.state) FROM placements p LEFT JOIN cancellations c USING (service_order_id)
     WHERE p.service_order_id = a.service_order_id)
  ELSE (SELECT CASE WHEN l.paused_at IS NULL THEN 'open' ELSE 'paused' END FROM locations l
        WHERE l.location_id = a.location_id) END`;

/** Records an action before it begins. If this throws, the action must not run. @returns the id for `endAction` */
export async function beginAction(pool: Pool, by: Actor, action: Action): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(`${BEGIN} SELECT audit_id AS id FROM begun`, valuesOf(by, action));
  if (rows[0] === undefined) throw new Error('an action was not recorded');
  return rows[0].id;
}

/** Records how an action ended. @param after by default the state of the order or the location */
export async function endAction(
  pool: Pool,
  by: Actor,
  action: Action & { id: string },
  { outcome, after }: Ended,
): Promise<void> {
  const ended = pool.query<{ after: string | null }>(
    `INSERT INTO audit_outcomes (audit_id, outcome, after)
     SELECT audit_id, $2::text, coalesce($3::text, ${STATE}) FROM audit a WHERE audit_id = $1::bigint RETURNING after`,
    [action.id, outcome, after ?? null],
  );
  const { rows } = await ended.catch(() => ({ rows: [{ after }] }));
  logAction(by, action, { outcome, after: rows[0]?.after });
  await ended;
}

/** Logs the action too, because a person who can change the audit in the database cannot change the log. */
function logAction(
  { kind, id, name }: Actor,
  { log, id: auditId, requestId: _id, ...about }: Action & { id: string | undefined },
  ended: object,
): void {
  log?.info({ auditId, ...about, ...ended, by: { kind, id, name } }, 'operator');
}

/** The author of an action, with the fields of the action that come from the request. */
export type Author = Actor & Pick<Action, 'source' | 'requestId' | 'log'>;

/** Records an action that has already ended, such as a refusal. */
export async function recordAction(pool: Pool, by: Author, given: Action, { outcome, after }: Ended): Promise<void> {
  const { source, requestId, log } = by;
  const action = { source, requestId, log, ...given };
  const { rows } = await pool.query<{ id: string }>(
    `${BEGIN} INSERT INTO audit_outcomes (audit_id, outcome, after) SELECT audit_id, $12::text, $13::text FROM begun
     RETURNING audit_id AS id`,
    [...valuesOf(by, action), outcome, after ?? null],
  );
  logAction(by, { ...action, id: rows[0]?.id }, { outcome, after });
}

export type Deed = Pick<Action, 'action' | 'subject'>;

/** Records an action about orders that were found by their member, at each location that has some of them. */
export async function recordAtOrders(pool: Pool, by: Author, action: string, ids: readonly string[]): Promise<void> {
  // guard: orders-in-audit
  const { rows } = await pool.query<{ locationId: string; after: string }>(
    `SELECT location_id AS "locationId", 'orders ' || count(*) AS after FROM orders
     WHERE service_order_id = ANY ($1::text[]) GROUP BY 1 ORDER BY 1`,
    [ids],
  );
  await recordAtLocations(pool, by, { action }, rows);
}

/** Records an action that is done at each of these locations. One statement, because a group may have thousands of them. */
export async function recordAtLocations(
  pool: Pool,
  by: Author,
  { action, subject }: Deed,
  done: readonly { locationId: string; after: string }[],
): Promise<void> {
  const { kind, id, name, source, requestId, log } = by;
  const { rows } = await pool.query<{ id: string; locationId: string; after: string }>(
    `WITH done AS (SELECT * FROM jsonb_to_recordset($8::jsonb) AS d ("locationId" text, after text)), begun AS (
       INSERT INTO audit (actor_kind, actor_id, actor_name, source, request_id, action, subject, location_id)
       SELECT $1, $2, $3, $4, $5, $6, $7, "locationId" FROM done RETURNING audit_id AS id, location_id AS "locationId"
     ), ended AS (
       INSERT INTO audit_outcomes (audit_id, outcome, after)
       SELECT id, 'done', after FROM begun JOIN done USING ("locationId")
     )
     SELECT * FROM begun JOIN done USING ("locationId")`,
    [kind, id, name, source, requestId, action, subject, JSON.stringify(done)],
  );
  for (const { after, ...at } of rows)
    logAction(by, { action, subject, source, log, ...at }, { outcome: 'done', after });
}

/**
 * Runs `work` as a recorded action. The outcome is `refused` if the result has a `refused`, or is undefined or false.
 * @param after a code for the result; by default the state of the order or the location
 */
export async function audited<Result>(
  pool: Pool,
  by: Actor,
  action: Action,
  work: () => Promise<Result>,
  after: (result: Result) => string | undefined = () => undefined,
): Promise<Result> {
  const id = await beginAction(pool, by, action);
  // If the end cannot be recorded, the audit shows the action without an outcome.
  const end = (how: Ended): Promise<void> => endAction(pool, by, { ...action, id }, how).catch(() => {});
  const result = await work().catch(async (error: unknown) => {
    await end({ outcome: 'failed' });
    throw error;
  });
  await end({ outcome: isRefused(result) ? 'refused' : 'done', after: after(result) });
  return result;
}

function isRefused(result: unknown): boolean {
  return result === undefined || result === false || (isObject(result) && 'refused' in result);
}

const BEGIN = `
  WITH begun AS (
    INSERT INTO audit (actor_kind, actor_id, actor_name, source, request_id, action, location_id, service_order_id,
                       webhook_id, subject, before)
    SELECT $1, $2, $3, $4, $5, $6, a.location_id, a.service_order_id, a.webhook_id, a.subject, coalesce($11, ${STATE})
    FROM (SELECT coalesce($7::text, p.location_id) AS location_id, p.service_order_id, $9::uuid AS webhook_id,
                 $10::text AS subject
          FROM (SELECT) AS once
          LEFT JOIN (SELECT service_order_id, location_id FROM placements WHERE service_order_id = $8::text
                     UNION ALL SELECT service_order_id, location_id FROM past_orders WHERE service_order_id = $8::text
                     UNION ALL SELECT $8::text, location_id FROM find_tombstone($8::text) LIMIT 1) AS p ON true) AS a
    RETURNING audit_id
  )`;

function valuesOf(by: Actor, done: Action): (string | null)[] {
  const { action, source, requestId, locationId, serviceOrderId, webhookId, subject, before } = done;
  const about = [source, requestId, action, locationId, serviceOrderId, webhookId, subject, before];
  return [by.kind, by.id, by.name, ...about.map((each) => each ?? null)];
}
