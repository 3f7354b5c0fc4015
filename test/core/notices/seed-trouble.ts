import type { Contact, NoticeReason } from '../../../src/core/contacts/contact.ts';
import type { KitchenChange } from '../../../src/core/domain/kitchen-changes.ts';
import type { Fixtures } from '../../../world/system/fixtures.ts';

/** The change of a seeded order. */
const FRIES: KitchenChange[] = [{ what: 'item', name: 'Fries', was: 0, is: 1 }];

type Stage = Pick<Fixtures, 'query' | 'seedOrder'>;

export async function setContacts(
  { query }: Stage,
  locationId: string,
  contacts: Contact[],
  timeZone: string | null = 'Europe/Berlin',
): Promise<void> {
  await query(`UPDATE locations SET name = 'Trattoria Nord', contacts = $2, time_zone = $3 WHERE location_id = $1`, [
    locationId,
    JSON.stringify(contacts),
    timeZone,
  ]);
}

/** An order with a trouble that began `minutes` ago. */
export async function seedTrouble(
  stage: Stage,
  reason: NoticeReason,
  about: { serviceOrderId: string; locationId: string; minutes?: number },
): Promise<void> {
  const { serviceOrderId, locationId, minutes = 3 } = about;
  const { query } = stage;
  await stage.seedOrder({ serviceOrderId, locationId, contents: { member: { name: 'Ada Lovelace' } } });
  const values = [serviceOrderId, minutes];
  const ago = 'now() - make_interval(mins => $2)';
  if (reason === 'cancel_by_phone') {
    await query(`UPDATE orders SET cancellation = 'requested' WHERE service_order_id = $1`, [serviceOrderId]);
    await query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, requested_at, state, deadline_at, next_attempt_at)
       VALUES ($1, $3, 'platform', ${ago}, 'by_phone', now(), 'infinity')`,
      [...values, locationId],
    );
    return;
  }
  if (reason === 'changed') {
    await query(
      `WITH o AS (UPDATE orders SET change = 'not_applied', changed_at = ${ago} WHERE service_order_id = $1 RETURNING changed_at)
       INSERT INTO order_changes (service_order_id, seen_at, changes, told)
       SELECT $1, changed_at, '[{"path": "items"}]', $3::jsonb FROM o`,
      [...values, JSON.stringify(FRIES)],
    );
    return;
  }
  const SET: Record<Exclude<NoticeReason, 'cancel_by_phone' | 'changed'>, string> = {
    late: `state = 'waiting', finished_at = NULL, deadline_at = now() + interval '1 h', signalled_at = ${ago}`,
    in_doubt: `state = 'in_doubt', finished_at = NULL, next_attempt_at = 'infinity',
               deadline_at = now() + interval '1 h', doubt_since = ${ago}`,
    failed: `state = 'failed', finished_at = ${ago}`,
  };
  await query(`UPDATE placements SET ${SET[reason]} WHERE service_order_id = $1`, values);
  await query(
    `UPDATE orders SET rank = $2, failed_by_us = $3, ended_at = CASE WHEN $3 THEN now() END WHERE service_order_id = $1`,
    [serviceOrderId, reason === 'failed' ? 100 : 0, reason === 'failed'],
  );
}
