import type { Pool } from 'pg';
import { z } from 'zod';
import { Instant } from '../domain/order.ts';

export const Case = z
  .object({ holder: z.string(), takenAt: Instant })
  .nullable()
  .meta({ description: 'The operator who takes care of it, as typed or by name. Null for nobody.' });
export const SnoozedUntil = Instant.nullable().meta({
  description: 'Until when its alarm is hidden from everybody. Null if it is not hidden.',
});
export const Note = z.object({ at: Instant, by: z.string(), text: z.string() });

/** How operators take care of an order or a location. */
export const Care = {
  case: Case,
  snoozedUntil: SnoozedUntil,
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

/** SQL of the columns of `Care`, for the subject with the id `$1`. */
export const careOf = (column: Column): string => `
  (SELECT json_build_object('holder', holder, 'takenAt', taken_at) FROM cases
   WHERE ${column} = $1 AND holder IS NOT NULL) AS "case",
  (SELECT to_json(snoozed_until) FROM cases WHERE ${column} = $1 AND snoozed_until > now()) AS "snoozedUntil",
  (SELECT coalesce(json_agg(json_build_object('at', at, 'by', by, 'text', text) ORDER BY note_id), '[]')
   FROM (SELECT * FROM notes WHERE ${column} = $1 ORDER BY note_id DESC LIMIT ${NOTES}) AS n) AS notes`;

export async function readCare(pool: Pool, subject: Subject): Promise<Care> {
  const { column, id } = placeOf(subject);
  const { rows } = await pool.query<Care>(`SELECT ${careOf(column)}`, [id]);
  return rows[0] ?? { case: null, snoozedUntil: null, notes: [] };
}

/** Gives the case to `holder`. @returns undefined if the subject does not exist */
export async function takeCase(
  pool: Pool,
  subject: Subject,
  holder: string,
): Promise<NonNullable<Care['case']> | undefined> {
  const { column, table, id } = placeOf(subject);
  const { rows } = await pool.query<{ taken: NonNullable<Care['case']> }>(
    `INSERT INTO cases AS c (${column}, holder, taken_at) SELECT ${column}, $2, now() FROM ${table} WHERE ${column} = $1
     ON CONFLICT (${column}) DO UPDATE
       SET holder = excluded.holder, changed_at = now(), closed_at = NULL,
           taken_at = CASE WHEN c.holder = excluded.holder THEN c.taken_at ELSE excluded.taken_at END
     RETURNING json_build_object('holder', holder, 'takenAt', taken_at) AS taken`,
    [id, holder],
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
         SET holder = NULL, taken_at = NULL, closed_at = excluded.closed_at, snoozed_until = NULL, changed_at = now()
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
