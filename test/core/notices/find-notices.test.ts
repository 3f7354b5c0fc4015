import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pauseLocation, resumeLocation } from '../../../src/core/kitchens/pause-location.ts';
import { NOTICE_REASONS, type Contact, type NoticeReason } from '../../../src/core/contacts/contact.ts';
import { FIND, findNotices, stepsDue } from '../../../src/core/notices/find-notices.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { readPlans } from '../../support/read-plans.ts';
import { seedTrouble, setContacts } from './seed-trouble.ts';

const KITCHEN: Contact = { name: 'Kitchen', email: 'kitchen@nord.example', via: 'email' };
const OWNER: Contact = { name: 'Owner', phone: '+4930123456', via: 'webhook', afterMinutes: 10 };

let stage: Stage;
let count = 0;
/** Each test has its own location. */
let locationId: string;

beforeAll(async () => {
  stage = await startStage();
});
beforeEach(async () => {
  locationId = `nord-${(count += 1)}`;
  await stage.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
  await setContacts(stage, locationId, [KITCHEN]);
});
afterAll(() => stage?.stop());

const seed = async (reason: NoticeReason, minutes?: number, id = `${locationId}-${reason}`): Promise<string> => {
  await seedTrouble(stage, reason, { serviceOrderId: id, locationId, ...(minutes !== undefined && { minutes }) });
  return id;
};
/** What the location's contacts are told: the reasons, sorted. */
const found = async (page?: number): Promise<unknown[]> => {
  await findNotices(stage.pool, 0, page);
  const rows = await stage.query(
    `SELECT n.reason, n.contact ->> 'name' AS name FROM notices n JOIN notice_messages USING (message_id)
     WHERE n.location_id = $1 ORDER BY n.reason, name`,
    [locationId],
  );
  return rows.map(({ reason, name }) => (name === 'Kitchen' ? reason : `${String(reason)} ${String(name)}`));
};
const change = (id: string, set: string, table = 'placements'): Promise<unknown> =>
  stage.query(`UPDATE ${table} SET ${set} WHERE service_order_id = $1`, [id]);

describe('a contact gets a notice', () => {
  it('about an order that is late, failed, in doubt, changed or must be cancelled by phone', async () => {
    for (const reason of NOTICE_REASONS) await seed(reason);
    expect(await found()).toEqual(['cancel_by_phone', 'changed', 'failed', 'in_doubt', 'late']);
  });

  it('once about each trouble, however often and by however many processes it is found', async () => {
    await setContacts(stage, locationId, [KITCHEN, KITCHEN]);
    await seed('late');
    await seed('in_doubt');
    await Promise.all([found(), found(), found()]);
    expect(await found()).toEqual(['in_doubt', 'late']);
  });

  it('about the troubles that the search has found, even if the next page of the search cannot be stored', async () => {
    await seed('late', 4, `${locationId}-first`);
    await seed('late', 3, `${locationId}-second`);
    await stage.query(`ALTER TABLE notices ADD CONSTRAINT broken CHECK (service_order_id <> '${locationId}-second')`);
    await expect(found(1)).rejects.toThrow('broken');
    expect(await stage.query('SELECT FROM notices WHERE location_id = $1', [locationId])).toHaveLength(1);
    await stage.query('ALTER TABLE notices DROP CONSTRAINT broken');
    expect(await found(1)).toEqual(['late', 'late']);
  });

  it('about a scheduled order that is late since its requested time was changed to now', async () => {
    const id = await seed('late', 120);
    await change(id, `requested_at = now() + interval '3 h'`, 'orders');
    await pauseLocation(stage.pool, locationId);
    await resumeLocation(stage.pool, locationId);
    await change(id, `clock_at = clock_at - interval '30 min'`);
    await change(id, 'requested_at = now()', 'orders');
    expect(await found()).toEqual(['late']);
  });

  it("only after the contact's minutes, and only if the trouble still exists", async () => {
    await setContacts(stage, locationId, [KITCHEN, OWNER]);
    const settled = await seed('in_doubt', 9);
    const lasting = await seed('in_doubt', 9, 'lasting');
    expect(await found()).toEqual(['in_doubt', 'in_doubt']);
    await change(settled, `state = 'sent', finished_at = now()`);
    await change(lasting, `doubt_since = now() - interval '11 min'`);
    await change(lasting, `since = (SELECT doubt_since FROM placements WHERE service_order_id = $1)`, 'notices');
    expect(await found()).toEqual(['in_doubt', 'in_doubt', 'in_doubt Owner']);
  });

  it('again if the order is in doubt a second time', async () => {
    const id = await seed('in_doubt');
    await found();
    await change(id, `doubt_since = now() - interval '1 min'`);
    expect(await found()).toEqual(['in_doubt', 'in_doubt']);
  });

  it("about a doubt when the contact's minutes have passed since the doubt began, not since the signal", async () => {
    await setContacts(stage, locationId, [OWNER]);
    const id = await seed('in_doubt', 9);
    await change(id, `signalled_at = now() - interval '1 h'`);
    expect(await found()).toEqual([]);
    await change(id, 'doubt_since = NULL');
    expect(await found()).toEqual(['in_doubt Owner']);
  });

  it("about every trouble older than the contact's minutes, even if the search for troubles has several pages", async () => {
    for (const [nth, minutes] of [11, 12, 13].entries()) await seed('late', minutes, `${locationId}-${nth}`);
    await setContacts(stage, locationId, [OWNER]);
    expect(await found(2)).toEqual(['late Owner', 'late Owner', 'late Owner']);
  });

  it.each([
    ['in_doubt', 'a minute', 61],
    ['cancel_by_phone', 'a minute', 61],
    ['changed', 'a minute', 61],
    ['late', 'a quarter of an hour', 901],
    ['failed', 'a quarter of an hour', 901],
    ['called off', 'a quarter of an hour', 901],
  ] as const)(
    'in one message about all waiting troubles, and a later trouble (%s) waits %s',
    async (kind, _time, seconds) => {
      const trouble = async (nth: number): Promise<void> => {
        const id = await seed(kind === 'called off' ? 'cancel_by_phone' : kind, 3, `${locationId}-${nth}`);
        if (kind !== 'called off') return;
        await stage.query(`UPDATE cancellations SET fails_with = '{}' WHERE service_order_id = $1`, [id]);
      };
      for (const nth of [1, 2, 3]) await trouble(nth);
      const messages = async (): Promise<unknown> =>
        (
          await stage.query(
            `SELECT count(n) ::int AS orders FROM notices n LEFT JOIN notice_messages m USING (message_id)
           WHERE n.location_id = $1 GROUP BY message_id ORDER BY min(m.created_at)`,
            [locationId],
          )
        ).map(({ orders }) => orders);
      await findNotices(stage.pool);
      await trouble(4);
      await findNotices(stage.pool);
      expect(await messages(), 'the fourth waits').toEqual([3, 1]);
      const waiting = `SELECT FROM notices WHERE location_id = $1 AND message_id IS NULL`;
      expect(await stage.query(waiting, [locationId])).toHaveLength(1);
      const after = async (s: number): Promise<unknown[]> => {
        await stage.query(
          `UPDATE notice_messages SET created_at = now() - make_interval(secs => $2) WHERE location_id = $1`,
          [locationId, s],
        );
        await findNotices(stage.pool);
        return stage.query(waiting, [locationId]);
      };
      expect(await after(seconds - 2)).toHaveLength(1);
      expect(await after(seconds)).toEqual([]);
      expect(await messages()).toEqual([3, 1]);
    },
  );

  it('only about a trouble that still exists when the next message is due', async () => {
    await seed('failed', 1);
    await findNotices(stage.pool);
    const id = await seed('in_doubt');
    await findNotices(stage.pool);
    await change(id, `state = 'sent', finished_at = now()`);
    await findNotices(stage.pool);
    expect(await stage.query('SELECT FROM notices WHERE service_order_id = $1', [id])).toEqual([]);
  });
});

describe('a contact gets no notice', () => {
  const quiet: [what: string, reason: NoticeReason, set: string, table?: string][] = [
    ['of an order that was signalled less than 2 minutes ago', 'late', `signalled_at = now() - interval '1 min'`],
    ['of an order that waits because its location is paused', 'late', `cause = '{"code":"location_paused"}'`],
    ['of an order for later that is not due yet', 'late', `requested_at = now() + interval '2 h'`, 'orders'],
    ['of a late order that is being cancelled', 'late', `cancellation = 'requested'`, 'orders'],
    ['of an order that has ended', 'in_doubt', 'ended_at = now()', 'orders'],
    ['of a failure hours ago', 'failed', `finished_at = now() - interval '3 h'`],
    ['of a failure whose order reached the POS after all', 'failed', 'failed_by_us = false', 'orders'],
    ['of a change after the order has ended', 'changed', 'ended_at = now()', 'orders'],
    ['of a change of an order that is to be cancelled', 'changed', `cancellation = 'requested'`, 'orders'],
    ['of a change that an operator has answered', 'changed', `change = 'applied'`, 'orders'],
    ['of a cancellation that has ended', 'cancel_by_phone', 'finished_at = now()', 'cancellations'],
  ];
  it.each(quiet)('%s', async (_what, reason, set, table) => {
    await change(await seed(reason), set, table);
    expect(await found()).toEqual([]);
  });

  it('about an order that a pause delayed, until the order is late even without the time of the pause', async () => {
    await setContacts(stage, locationId, [KITCHEN, OWNER]);
    const id = await seed('late', 20);
    const deadline = async (): Promise<number> => Number((await stage.placement(id))?.['deadline_at']);
    const before = await deadline();
    const pausedFor = async (minutes: number): Promise<void> => {
      await pauseLocation(stage.pool, locationId);
      await stage.query(`UPDATE locations SET paused_at = now() - make_interval(mins => $2) WHERE location_id = $1`, [
        locationId,
        minutes,
      ]);
      await resumeLocation(stage.pool, locationId);
    };
    await pausedFor(19);
    expect(await found()).toEqual([]);
    expect(Math.round(((await deadline()) - before) / 60_000)).toBe(19);
    await change(id, `clock_at = now() - interval '3 min'`);
    expect(await found()).toEqual(['late']);
  });

  it('about a scheduled order whose location was paused when the order was due', async () => {
    const id = await seed('late', 120);
    await change(id, `requested_at = now() + interval '50 min'`, 'orders');
    await change(id, `deadline_at = now() + interval '80 min'`);
    await pauseLocation(stage.pool, locationId);
    await stage.query(`UPDATE locations SET paused_at = now() - interval '1 h' WHERE location_id = $1`, [locationId]);
    await resumeLocation(stage.pool, locationId);
    expect(await found()).toEqual([]);
    const left = Number((await stage.placement(id))?.['deadline_at']) - Date.now();
    expect(Math.round(left / 60_000)).toBe(90);
  });

  it('about a doubt that may still be settled automatically, unless the order is late', async () => {
    const id = await seed('in_doubt');
    await change(id, `next_attempt_at = now() + interval '10 s'`);
    expect(await found()).toEqual([]);
    await change(id, `signalled_at = now() - interval '3 min'`);
    expect(await found()).toEqual(['late']);
  });

  it('about a doubt if the contact gets a notice that the order must be cancelled by phone', async () => {
    const id = await seed('in_doubt');
    await stage.query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at)
       VALUES ($1, $2, 'platform', 'by_phone', now())`,
      [id, locationId],
    );
    expect(await found()).toEqual(['cancel_by_phone']);
  });

  it('once another contact has answered', async () => {
    await setContacts(stage, locationId, [KITCHEN, OWNER]);
    const id = await seed('late', 3);
    expect(await found()).toEqual(['late']);
    await change(id, `answer = 'seen', answered_at = now()`, 'notices');
    await change(id, `signalled_at = now() - interval '11 min'`);
    await change(id, `since = (SELECT signalled_at FROM placements WHERE service_order_id = $1)`, 'notices');
    expect(await found()).toEqual(['late']);
  });

  it('if its stored settings are invalid, and other contacts still get their notices', async () => {
    await setContacts(stage, locationId, [{ via: 'pigeon' } as unknown as Contact, KITCHEN], null);
    await seed('late');
    expect(await found()).toEqual(['late']);
  });
});

describe('the due steps of a notice', () => {
  /** 23:30 in Berlin. */
  const now = new Date('2027-01-31T22:30:00Z');
  const due = (contact: object, about: Partial<Parameters<typeof stepsDue>[0]> = {}): number =>
    stepsDue({
      reason: 'in_doubt',
      ageS: 60,
      now,
      timeZone: 'Europe/Berlin',
      told: [],
      contacts: [{ ...KITCHEN, ...contact }],
      ...about,
    }).length;

  it('leave out a contact in its quiet hours, in the time zone of the restaurant', () => {
    expect(due({ quiet: { from: '22:00', to: '08:00' } })).toBe(0);
    expect(due({ quiet: { from: '23:00', to: '23:31' } })).toBe(0);
    expect(due({ quiet: { from: '23:31', to: '23:00' } })).toBe(1);
    expect(due({ quiet: { from: '22:00', to: '23:30' } })).toBe(1);
    expect(due({ quiet: { from: '23:00', to: '08:00' } }, { timeZone: 'Europe/London' })).toBe(1);
  });

  it('leave out a contact who has no `via`, wants only other reasons, or already got the notice', () => {
    expect(due({ about: ['late'] })).toBe(0);
    expect(due({ about: ['late', 'in_doubt'] })).toBe(1);
    expect(due({}, { contacts: [{ name: 'Shown', email: 'a@b.example' }] })).toBe(0);
    expect(due({}, { told: ['email 0 kitchen@nord.example'] })).toBe(0);
    expect(due({ afterMinutes: 5 }, { ageS: 301, told: ['email 0 kitchen@nord.example'] })).toBe(1);
  });

  it("wait for the contact's minutes, and the notice of a failure is due for ten minutes only", () => {
    expect(due({ afterMinutes: 2 }, { ageS: 119 })).toBe(0);
    expect(due({ afterMinutes: 2 }, { ageS: 120 })).toBe(1);
    expect(due({ afterMinutes: 2 }, { reason: 'failed', ageS: 719 })).toBe(1);
    expect(due({ afterMinutes: 2 }, { reason: 'failed', ageS: 721 })).toBe(0);
  });
});

it('the search for troubles reads no order that was sent, or that failed long ago', async () => {
  await stage.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
       SELECT 'old-' || nth, $1, CASE WHEN nth % 10 = 0 THEN 'failed' ELSE 'sent' END, now(), now() - interval '5 h'
       FROM generate_series(1, 5000) AS nth RETURNING service_order_id
     )
     INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, failed_by_us, ended_at)
     SELECT service_order_id, 'K1', $1, 'pickup', true, now() FROM p`,
    [locationId],
  );
  await stage.query('ANALYZE placements, orders, notices');
  await seed('failed', 1);
  await seed('late');
  const { whole, reads } = await readPlans(stage.pool, (recording) => recording.query(FIND));
  expect(whole.filter((table) => table === 'placements' || table === 'orders')).toEqual([]);
  expect(reads).toBeLessThan(1_000);
});
