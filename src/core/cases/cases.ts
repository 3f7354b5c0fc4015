import type { Pool } from 'pg';
import { z } from 'zod';
import { Instant } from '../domain/order.ts';
import { PEOPLE, TAKES_CASES } from '../operators/people.ts';

export const Case = z
  .object({
    holder: z.string(),
    takenAt: Instant,
    givenBy: z
      .string()
      .nullable()
      .meta({ description: 'Who handed it over to the holder. Null if the holder took it.' }),
  })
  .nullable()
  .meta({ description: 'The operator who takes care of it, by name. Null for nobody.' });
export const SnoozedUntil = Instant.nullable().meta({
  description: 'Until when its alarm is hidden from everybody. Null if it is not hidden.',
});
export const ClosedAt = Instant.nullable().meta({
  description: 'When it was closed. Failures, conflicts and changes of before then are settled.',
});
export const Note = z.object({ at: Instant, by: z.string(), text: z.string() });

/** How operators take care of an order or a location. */
export const Care = {
  case: Case,
  snoozedUntil: SnoozedUntil,
  closedAt: ClosedAt,
  notes: z.array(Note).meta({
    description:
      "The newest 200 notes, oldest first. Everybody who sees the subject reads them: they should have no member's data.",
  }),
};
export type Care = z.infer<z.ZodObject<typeof Care>>;

export type Subject = { serviceOrderId: string } | { locationId: string };

const NOTES = 200;

const placeOf = (subject: Subject): { column: Column; table: string; id: string } =>
  'serviceOrderId' in subject
    ? { column: 'service_order_id', table: 'placements', id: subject.serviceOrderId }
    : { column: 'location_id', table: 'locations', id: subject.locationId };
type Column = 'service_order_id' | 'location_id';

/** SQL of who handed a case over. After a change by a process of the previous version it is NULL. */
export const GIVEN_BY = 'CASE WHEN given_at = taken_at THEN given_by END';
const CASE = `json_build_object('holder', holder, 'takenAt', taken_at, 'givenBy', ${GIVEN_BY})`;

/** SQL of the columns of `Care`, for the subject with the id `$1`. */
export const careOf = (column: Column): string => `
  (SELECT ${CASE} FROM cases
   WHERE ${column} = $1 AND holder IS NOT NULL) AS "case",
  (SELECT to_json(snoozed_until) FROM cases WHERE ${column} = $1 AND snoozed_until > now()) AS "snoozedUntil",
  (SELECT to_json(closed_at) FROM cases WHERE ${column} = $1) AS "closedAt",
  (SELECT coalesce(json_agg(json_build_object('at', at, 'by', by, 'text', text) ORDER BY note_id), '[]')
   FROM (SELECT * FROM notes WHERE ${column} = $1 ORDER BY note_id DESC LIMIT ${NOTES}) AS n) AS notes`;

export async function readCare(pool: Pool, subject: Subject): Promise<Care> {
  const { column, id } = placeOf(subject);
  const { rows } = await pool.query<Care>(`SELECT ${careOf(column)}`, [id]);
  return rows[0] ?? { case: null, snoozedUntil: null, closedAt: null, notes: [] };
}

/** SQL that keeps a column if the holder already has the case. */
const unlessSame = (column: string): string =>
  `${column} = CASE WHEN c.holder = excluded.holder THEN c.${column} ELSE excluded.${column} END`;

/** Gives the case to `holder`. @param givenBy another person who hands it over @returns undefined if the subject does not exist */
export async function takeCase(
  pool: Pool,
  subject: Subject,
  holder: string,
  givenBy?: string,
): Promise<NonNullable<Care['case']> | undefined> {
  const { column, table, id } = placeOf(subject);
  const { rows } = await pool.query<{ taken: NonNullable<Care['case']> }>(
    `INSERT INTO cases AS c (${column}, holder, taken_at, given_by, given_at)
     SELECT ${column}, $2, now(), $3, now() FROM ${table} WHERE ${column} = $1
     ON CONFLICT (${column}) DO UPDATE
       SET holder = excluded.holder, changed_at = now(), closed_at = NULL,
           ${['taken_at', 'given_by', 'given_at'].map(unlessSame).join(', ')}
     RETURNING ${CASE} AS taken`,
    [id, holder, givenBy ?? null],
  );
  return rows[0]?.taken;
}

/** Ends the case, also if nobody has it, and stores a note if there is one. @returns whether the subject exists */
export async function closeCase(
  pool: Pool,
  subject: Subject,
  { by, text }: { by: string; text: string | undefined },
): Promise<boolean> {
  const { column, table, id } = placeOf(subject);
  const { rowCount } = await pool.query(
    `WITH closed AS (
       INSERT INTO cases (${column}, closed_at) SELECT ${column}, now() FROM ${table} WHERE ${column} = $1
       ON CONFLICT (${column}) DO UPDATE
         SET holder = NULL, taken_at = NULL, given_by = NULL, closed_at = excluded.closed_at, snoozed_until = NULL, changed_at = now()
     ), noted AS (
       INSERT INTO notes (${column}, by, text) SELECT ${column}, $2, $3::text FROM ${table}
       WHERE ${column} = $1 AND $3::text IS NOT NULL
     )
     SELECT FROM ${table} WHERE ${column} = $1`,
    [id, by, text ?? null],
  );
  return rowCount === 1;
}

/** @returns undefined if the subject does not exist */
export async function addNote(
  pool: Pool,
  subject: Subject,
  { by, text }: { by: string; text: string },
): Promise<z.infer<typeof Note> | undefined> {
  const { column, table, id } = placeOf(subject);
  const { rows } = await pool.query<{ note: z.infer<typeof Note> }>(
    `INSERT INTO notes (${column}, by, text) SELECT ${column}, $2, $3 FROM ${table} WHERE ${column} = $1
     RETURNING json_build_object('at', at, 'by', by, 'text', text) AS note`,
    [id, by, text],
  );
  return rows[0]?.note;
}

/** Hides the subject's alarm for `minutes`; 0 shows it again. @returns undefined if the subject does not exist */
export async function snooze(
  pool: Pool,
  subject: Subject,
  minutes: number,
): Promise<Pick<Care, 'snoozedUntil'> | undefined> {
  const { column, table, id } = placeOf(subject);
  const { rows } = await pool.query<Pick<Care, 'snoozedUntil'>>(
    `INSERT INTO cases (${column}, snoozed_at, snoozed_until)
     SELECT ${column}, now(), now() + nullif($2::int, 0) * interval '1 minute' FROM ${table} WHERE ${column} = $1
     ON CONFLICT (${column}) DO UPDATE
       SET snoozed_at = excluded.snoozed_at, snoozed_until = excluded.snoozed_until, changed_at = now()
     RETURNING to_json(snoozed_until) AS "snoozedUntil"`,
    [id, minutes],
  );
  return rows[0];
}

/**
 * Ends the cases of those who have lost a right with which they took them, so that nobody waits for them. A note says so.
 * @param lost the right: a named token, or a grant to an address or a group
 * @param by who took it away, by name
 */
export async function freeCases(
  pool: Pool,
  { name, email, group }: { name?: string; email?: string | null; group?: string | null },
  by: string,
): Promise<void> {
  await pool.query(
    `WITH lost AS MATERIALIZED (
       SELECT unnest($2::text[]) COLLATE "C" AS name
       UNION SELECT name COLLATE "C" FROM operator_sessions WHERE kind = 'person' AND (email = ANY ($2) OR $3 = ANY (groups))
     ), freed AS (
       UPDATE cases c SET holder = NULL, taken_at = NULL, given_by = NULL, changed_at = now()
       FROM (
         SELECT k.holder, k.service_order_id, k.location_id AS of_location,
                coalesce(k.location_id, p.location_id) AS location_id, coalesce(l.groups, '{}') AS groups
         FROM cases k LEFT JOIN placements p USING (service_order_id)
         LEFT JOIN locations l ON l.location_id = coalesce(k.location_id, p.location_id)
         WHERE k.holder IN (SELECT name FROM lost)) AS here
       WHERE (c.service_order_id = here.service_order_id OR c.location_id = here.of_location) AND c.holder = here.holder
         AND here.holder <> ALL (${PEOPLE})
       RETURNING c.service_order_id, c.location_id, here.holder
     )
     INSERT INTO notes (service_order_id, location_id, by, text)
     SELECT service_order_id, location_id, $4, holder || ' had this one, and has no role for it any more.' FROM freed`,
    [TAKES_CASES, [name ?? email ?? []].flat(), group ?? null, by],
  );
}
