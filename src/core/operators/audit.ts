import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import type { Actor } from './operator.ts';

/** What somebody is about to do. Ids and codes of ours: nothing of a member, and never a secret. */
export type Action = {
  action: string;
  locationId?: string | null | undefined;
  /** One that no signal ever named is left out: somebody may have typed anything. */
  serviceOrderId?: string | undefined;
  webhookId?: string | undefined;
  /** The id of a token, session or grant; what a replay of many matches. */
  subject?: string | undefined;
  /** By default the state of the order, or else of the location. */
  before?: string | undefined;
  /** The address it comes from. */
  source?: string | undefined;
  requestId?: string | undefined;
  /** Where it is a line once it has ended. The command line has none. */
  log?: Log | undefined;
};

export const ACT_OUTCOMES = ['done', 'refused', 'failed'] as const;
type Ended = { outcome: (typeof ACT_OUTCOMES)[number]; after?: string | undefined };

/** SQL for the state of what an act `a` is about, as a code. */
const STATE = `CASE
  WHEN a.subject IS NOT NULL OR a.webhook_id IS NOT NULL THEN NULL
  WHEN a.service_order_id IS NOT NULL THEN
    (SELECT concat_ws('/', p.state, c.state) FROM placements p LEFT JOIN cancellations c USING (service_order_id)
     WHERE p.service_order_id = a.service_order_id)
  ELSE (SELECT CASE WHEN l.paused_at IS NULL THEN 'open' ELSE 'paused' END FROM locations l
        WHERE l.location_id = a.location_id) END`;

/**
 * Writes down what is about to be done, and by whom. It is committed before the act: what cannot be written down is not
 * done.
 * @returns the id of its row, for `endAction`
 */
export async function beginAction(pool: Pool, by: Actor, action: Action): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(`${BEGIN} SELECT audit_id AS id FROM begun`, valuesOf(by, action));
  if (rows[0] === undefined) throw new Error('an act was not written down');
  return rows[0].id;
}

/** Writes down how an act ended. @param after by default the state of the order or the location */
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
  tell(by, action, { outcome, after: rows[0]?.after });
  await ended;
}

/** What the audit says, where nobody who has only the database's password can change it. */
function tell(
  { kind, id, name }: Actor,
  { log, id: auditId, requestId: _id, ...about }: Action & { id: string | undefined },
  ended: object,
): void {
  log?.info({ auditId, ...about, ...ended, by: { kind, id, name } }, 'operator');
}

/** Writes down what has happened already, such as a refusal. */
export async function recordAction(pool: Pool, by: Actor, action: Action, { outcome, after }: Ended): Promise<void> {
  const { rows } = await pool.query<{ id: string }>(
    `${BEGIN} INSERT INTO audit_outcomes (audit_id, outcome, after) SELECT audit_id, $12::text, $13::text FROM begun
     RETURNING audit_id AS id`,
    [...valuesOf(by, action), outcome, after ?? null],
  );
  tell(by, { ...action, id: rows[0]?.id }, { outcome, after });
}

/**
 * Does something as an act of somebody. It ends as `refused` where its result has a `refused`, or is none or false.
 * @param after a code for what came of it; by default the state of the order or the location
 */
export async function audited<Result>(
  pool: Pool,
  by: Actor,
  action: Action,
  work: () => Promise<Result>,
  after: (result: Result) => string | undefined = () => undefined,
): Promise<Result> {
  const id = await beginAction(pool, by, action);
  // One whose end cannot be written down stays without.
  const end = (how: Ended): Promise<void> => endAction(pool, by, { ...action, id }, how).catch(() => {});
  const result = await work().catch(async (error: unknown) => {
    await end({ outcome: 'failed' });
    throw error;
  });
  await end({ outcome: isRefused(result) ? 'refused' : 'done', after: after(result) });
  return result;
}

function isRefused(result: unknown): boolean {
  return (
    result === undefined || result === false || (typeof result === 'object' && result !== null && 'refused' in result)
  );
}

const BEGIN = `
  WITH begun AS (
    INSERT INTO audit (actor_kind, actor_id, actor_name, source, request_id, action, location_id, service_order_id,
                       webhook_id, subject, before)
    SELECT $1, $2, $3, $4, $5, $6, a.location_id, a.service_order_id, a.webhook_id, a.subject, coalesce($11, ${STATE})
    FROM (SELECT coalesce($7::text, p.location_id) AS location_id, p.service_order_id, $9::uuid AS webhook_id,
                 $10::text AS subject
          FROM (SELECT) AS once LEFT JOIN placements p ON p.service_order_id = $8::text) AS a
    RETURNING audit_id
  )`;

function valuesOf(by: Actor, done: Action): (string | null)[] {
  const { action, source, requestId, locationId, serviceOrderId, webhookId, subject, before } = done;
  const about = [source, requestId, action, locationId, serviceOrderId, webhookId, subject, before];
  return [by.kind, by.id, by.name, ...about.map((each) => each ?? null)];
}
