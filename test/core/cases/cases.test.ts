import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endPauses } from '../../../src/core/kitchens/pos-pauses.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/kitchens/pause-location.ts';
import { listSeenLocations, type SeenLocation } from '../../../src/core/locations/show-location.ts';
import { addNote, closeCase, readCare, snooze, takeCase, type Subject } from '../../../src/core/cases/cases.ts';
import { orderTimeline } from '../../../src/core/orders/order-timeline.ts';
import { showOrder } from '../../../src/core/orders/show-order.ts';
import { eraseMember, eraseMembers } from '../../../src/core/retention/erase-members.ts';
import { OPERATOR_TOKEN, askOperator, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { giveRoles, nameToken } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { readEvents } from '../../support/read-events.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { until } from '../../../world/processes/until.ts';

let stage: Stage;
let pool: Pool;
let operator: Operator;
beforeAll(async () => {
  stage = await startStage();
  ({ pool } = stage);
  operator = await askOperator(stage.app);
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  for (const serviceOrderId of ['order-1', 'order-2']) await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
});
afterAll(() => stage?.stop());

describe.each<[string, Subject]>([
  ['an order', { serviceOrderId: 'order-1' }],
  ['a location', { locationId: 'club-1' }],
])('the case of %s', (_what, subject) => {
  it('is taken, handed over and closed', async () => {
    const taken = await takeCase(pool, subject, 'Anna');
    expect(await takeCase(pool, subject, 'Anna')).toEqual(taken);
    expect((await readCare(pool, subject)).case).toEqual({ holder: 'Anna', takenAt: taken?.takenAt, givenBy: null });
    const handedOver = await takeCase(pool, subject, 'Ben', 'Anna');
    expect(handedOver).toEqual({ holder: 'Ben', takenAt: expect.any(String), givenBy: 'Anna' });
    expect(handedOver?.takenAt).not.toBe(taken?.takenAt);
    // Ben has it already.
    expect(await takeCase(pool, subject, 'Ben', 'Cleo')).toEqual(handedOver);
    expect(await takeCase(pool, subject, 'Ben')).toEqual(handedOver);
    expect((await readCare(pool, subject)).closedAt).toBeNull();
    expect(await closeCase(pool, subject, { by: 'Ben', text: 'printed again' })).toBe(true);
    const notes = [{ by: 'Ben', text: 'printed again' }];
    expect(await readCare(pool, subject)).toMatchObject({ case: null, closedAt: expect.any(String), notes });
    await takeCase(pool, subject, 'Anna');
    expect((await readCare(pool, subject)).closedAt).toBeNull();
  });

  it('was given by nobody after a process of the previous version gave it to another holder', async () => {
    await takeCase(pool, subject, 'Anna');
    await takeCase(pool, subject, 'Ben', 'Anna');
    await stage.query(`UPDATE cases SET holder = 'Cleo', taken_at = now(), changed_at = now() WHERE holder = 'Ben'`);
    expect((await readCare(pool, subject)).case).toEqual({
      holder: 'Cleo',
      takenAt: expect.any(String),
      givenBy: null,
    });
    await closeCase(pool, subject, { by: 'Cleo', text: undefined });
  });

  it('shows its notes oldest first, and can be snoozed for some minutes', async () => {
    const note = await addNote(pool, subject, { by: 'Anna', text: 'calls back' });
    const hidden = await snooze(pool, subject, 30);
    expect(Date.parse(hidden?.snoozedUntil ?? '') - Date.now()).toBeGreaterThan(29 * 60_000);
    expect(await readCare(pool, subject)).toMatchObject({ ...hidden, notes: [{ text: 'printed again' }, note] });
    expect(await snooze(pool, subject, 0)).toEqual({ snoozedUntil: null });
    expect((await readCare(pool, subject)).snoozedUntil).toBeNull();
  });
});

it("an order's timeline has one entry for each action of an operator, with the text of notes", async () => {
  const path = '/orders/order-2';
  await nameToken(stage, 'Ben', ['operator']);
  await operator.send('PUT', `${path}/case`, { to: 'Ben' });
  await operator.post(`${path}/notes`, { text: 'the oven is broken' });
  await operator.post(`${path}/snooze`, { minutes: 0 });
  await operator.post(`${path}/case/close`, { note: 'repaired' });
  const shown = await showOrder(pool, 'order-2');
  const story = shown === undefined ? [] : orderTimeline(shown).filter(({ what }) => what === 'action');
  expect(story.map(({ details }) => details)).toMatchObject([
    { action: 'take case', before: 'nobody', after: 'Ben' },
    { action: 'note', text: 'the oven is broken' },
    { action: 'snooze' },
    { action: 'close case', before: 'Ben', after: 'nobody', text: 'repaired' },
  ]);
  expect((await operator.get('/audit')).text).not.toMatch(/oven|repaired/);
});

it('a follower of the board sees who has a case, but only at locations that the follower may see', async () => {
  const url = `${await stage.listen()}/v1/live`;
  const token = await nameToken(stage, 'elsewhere', ['viewer'], ['club-2']);
  const elsewhere = await readEvents(url, { authorization: `Bearer ${token}` });
  const read = await readEvents(url, { authorization: `Bearer ${OPERATOR_TOKEN}` });
  type Cases = { id: string; holder: string | null; snoozedUntil: string | null; closedAt: string | null }[];
  const all = (of = read): Cases | undefined =>
    (of.events.findLast(({ event }) => event === 'attention')?.data as { cases?: Cases } | undefined)?.cases;
  // The tests above closed some.
  const cases = (of = read): unknown[] | undefined =>
    all(of)?.filter(({ holder, snoozedUntil }) => holder ?? snoozedUntil);
  await until(() => cases() !== undefined);
  await operator.send('PUT', '/orders/order-1/case', {});
  await operator.post('/locations/club-1/snooze', { minutes: 5 });
  const nobody = { holder: null, takenAt: null, givenBy: null };
  await until(() => cases()?.length === 2);
  expect(cases()).toEqual([
    {
      kind: 'location',
      id: 'club-1',
      locationId: 'club-1',
      ...nobody,
      closedAt: expect.any(String),
      snoozedAt: expect.any(String),
      snoozedUntil: expect.any(String),
    },
    {
      kind: 'order',
      id: 'order-1',
      locationId: 'club-1',
      snoozedUntil: null,
      snoozedAt: null,
      closedAt: null,
      holder: 'OPERATOR_TOKEN',
      takenAt: expect.any(String),
      givenBy: null,
    },
  ]);
  await until(() => cases(elsewhere) !== undefined);
  expect(all(elsewhere)).toEqual([]);

  // A closed case stays, so that boards leave out what it settled.
  await operator.post('/orders/order-1/case/close', {});
  await until(() =>
    all()?.some(({ id, holder, closedAt }) => id === 'order-1' && holder === null && closedAt !== null),
  );
  read.leave();
  elsewhere.leave();
});

/** The path that takes a right away. */
const REVOKED = `SELECT '/operators/tokens/' || token_id || '/revoke' AS path FROM operator_tokens WHERE name = $1`;
const TAKEN = `SELECT '/operators/grants/' || grant_id || '/remove' AS path FROM operator_grants WHERE $1 IN (email, group_name)`;

describe('a case is handed over', () => {
  let grace: Operator;
  beforeAll(async () => {
    await stage.query(`UPDATE locations SET groups = '{north}' WHERE location_id = 'club-1'`);
    grace = await askOperator(stage.app, await nameToken(stage, 'Grace', ['operator'], null));
    await nameToken(stage, 'Ann', ['operator'], ['club-1']);
    await nameToken(stage, 'Norah', ['operator'], [], ['north']);
    await nameToken(stage, 'of club-2', ['operator'], ['club-2']);
    await nameToken(stage, 'a viewer', ['viewer', 'admin', 'integrator'], null);
    await nameToken(stage, 'revoked', ['operator'], null);
    await stage.query(`UPDATE operator_tokens SET revoked_at = now() WHERE name = 'revoked'`);
    await giveRoles(stage, { email: 'eve@example.com' }, ['operator']);
    await giveRoles(stage, { group: 'team' }, ['operator'], ['club-1']);
    await stage.query(
      `INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, groups, created_at, expires_at)
       SELECT gen_random_uuid(), (name || team)::bytea, 'person', name, name, ARRAY[team], now() - ago, now() - ago
       FROM (VALUES ('Tom', 'team', interval '3 d'), ('Left', 'team', interval '8 d'), ('Other', 'others', interval '0'),
                    ('Moved', 'team', interval '3 d'), ('Moved', 'others', interval '1 d')) AS of (name, team, ago)`,
    );
  });

  it.each(['/orders/order-1', '/locations/club-1'])('only to people who may act there: %s', async (path) => {
    const { body } = await grace.get(`${path}/case/people`);
    expect(body['people']).toEqual(['Ann', 'Ben', 'Grace', 'Norah', 'Tom', 'eve@example.com']);
    const give = (to: string): Promise<OperatorAnswer> => grace.send('PUT', `${path}/case`, { to });
    expect(await give(' ann ')).toMatchObject({ status: 200, body: { case: { holder: 'Ann', givenBy: 'Grace' } } });
    for (const to of ['Aann', 'of club-2', 'a viewer', 'revoked', 'Left', 'Other', 'Moved']) {
      expect(await give(to)).toMatchObject({ status: 400, body: { issues: [{ path: 'to' }] } });
    }
    expect((await give('Aann')).text).toContain(
      'Nobody called \\"Aann\\" may take cases here. Did you mean \\"Ann\\"?',
    );
    expect((await grace.get(path)).body).toMatchObject({ case: { holder: 'Ann', givenBy: 'Grace' } });
    expect(await grace.send('PUT', `${path}/case`, {})).toMatchObject({
      body: { case: { holder: 'Grace', givenBy: null } },
    });
  });

  it('also an order of a location that is not configured', async () => {
    await nameToken(stage, 'of club-9', ['operator'], ['club-9']);
    await stage.seedOrder({ serviceOrderId: 'order-9', locationId: 'club-9' });
    const { body } = await grace.get('/orders/order-9/case/people');
    expect(body['people']).toEqual(['Ben', 'Grace', 'eve@example.com', 'of club-9']);
  });

  it.each([
    ['a token is revoked', REVOKED, 'Ann', 'Ann'],
    ['the roles of a group are taken', TAKEN, 'team', 'Tom'],
    ['the last roles of an address are taken', TAKEN, 'eve@example.com', 'eve@example.com'],
  ])('and is free again when %s', async (_what, way, lost, holder) => {
    const [kept, freed] = ['/orders/order-1', '/locations/club-1'];
    const remove = async (): Promise<void> => {
      const [right] = await stage.query(`${way} LIMIT 1`, [lost]);
      expect(await operator.post(String(right?.['path']))).toMatchObject({ status: 200 });
    };
    await grace.send('PUT', `${kept}/case`, { to: 'Grace' });
    await grace.send('PUT', `${freed}/case`, { to: holder });
    if (lost.includes('@')) {
      await giveRoles(stage, { email: holder }, ['operator', 'integrator']);
      await remove();
      expect((await grace.get(freed)).body).toMatchObject({ case: { holder } });
    }
    await remove();
    expect((await grace.get(freed)).body).toMatchObject({ case: null });
    const text = `${holder} had this one, and has no role for it any more.`;
    expect((await readCare(pool, { locationId: 'club-1' })).notes.at(-1)).toMatchObject({ by: 'OPERATOR_TOKEN', text });
    expect((await grace.get(kept)).body).toMatchObject({ case: { holder: 'Grace' } });
  });

  it('and nobody is found for an order or a location that does not exist', async () => {
    for (const path of ['/orders/none', '/locations/none']) {
      expect((await grace.get(`${path}/case/people`)).status).toBe(404);
      expect((await grace.send('PUT', `${path}/case`, { to: 'Ann' })).status).toBe(404);
    }
  });
});

describe('a note', () => {
  it('is erased with the member of its order', async () => {
    const contents = sampleOrder({ serviceOrderId: 'order-3', locationId: 'club-1' });
    await stage.seedOrder({ serviceOrderId: 'order-3', locationId: 'club-1', contents });
    await addNote(pool, { serviceOrderId: 'order-3' }, { by: 'Anna', text: 'Ada is allergic' });
    await eraseMember(pool, contents.member.id, false);
    expect((await readCare(pool, { serviceOrderId: 'order-3' })).notes).toEqual([]);
    expect((await readCare(pool, { serviceOrderId: 'order-2' })).notes).not.toEqual([]);
  });

  it('is deleted after the retention even if it is about a location', async () => {
    await stage.query(`UPDATE notes SET at = now() - interval '31 days' WHERE location_id = 'club-1'`);
    await eraseMembers(pool, 30);
    expect((await readCare(pool, { locationId: 'club-1' })).notes).toEqual([]);
    expect((await readCare(pool, { serviceOrderId: 'order-2' })).notes).not.toEqual([]);
  });
});

it('the cases and notes of a location are deleted with the location', async () => {
  await stage.addLocation('gone', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await operator.send('PUT', '/locations/gone/case', {});
  await operator.post('/locations/gone/notes', { text: 'calls back' });
  expect(await operator.send('DELETE', '/locations/gone?unpaused=true')).toMatchObject({ status: 200 });
  expect(await readCare(pool, { locationId: 'gone' })).toEqual({
    case: null,
    snoozedUntil: null,
    closedAt: null,
    notes: [],
  });
});

describe('a pause by an operator with an end', () => {
  const shown = async (): Promise<Partial<SeenLocation>> => (await listSeenLocations(pool, ['club-1']))[0] ?? {};
  const pass = (): Promise<unknown> =>
    stage.query(`UPDATE locations SET paused_until = now() WHERE paused_until IS NOT NULL`);
  const OPEN = { paused: false, pausedUntil: null, pausedReason: null, pausedBy: null };
  const ENDED = [{ locationId: 'club-1', by: 'operator' }];

  it('shows its reason and operator, and lets orders continue with a later deadline at its end', async () => {
    await stage.query(`UPDATE placements SET state = 'held', finished_at = NULL, signalled_at = now() - interval '1 h',
                       next_attempt_at = 'tomorrow' WHERE service_order_id = 'order-1'`);
    await operator.post('/locations/club-1/pause', { minutes: 30, reason: 'The oven is broken.' });
    expect(await endPauses(pool)).toEqual([]);
    const { pausedUntil } = await shown();
    expect((pausedUntil?.getTime() ?? 0) - Date.now()).toBeGreaterThan(29 * 60_000);
    expect(await shown()).toMatchObject({ pausedReason: 'The oven is broken.', pausedBy: 'OPERATOR_TOKEN' });
    // It stands in the story of the order that it holds, and not of one that was at its POS before.
    const told = async (id: string): Promise<unknown[]> =>
      ((await operator.get(`/orders/${id}`)).body['timeline'] as { what: string; details: { action?: string } }[])
        .filter(({ details }) => details.action === 'pause')
        .map(({ what }) => what);
    expect([await told('order-1'), await told('order-2')]).toEqual([['action'], []]);
    await pass();
    expect(await endPauses(pool)).toEqual(ENDED);
    expect(await shown()).toMatchObject(OPEN);
    const [order] = await stage.query(
      `SELECT next_attempt_at <= now() AS due, deadline_at > now() - interval '1 h' AS later
       FROM placements WHERE service_order_id = 'order-1'`,
    );
    expect(order).toEqual({ due: true, later: true });
  });

  it('is replaced by a later pause, and a resume ends this later pause', async () => {
    await pauseLocation(pool, 'club-1', { by: 'Anna', minutes: 5, reason: 'busy' });
    await pauseLocation(pool, 'club-1', { by: 'Ben' });
    expect(await shown()).toMatchObject({ paused: true, pausedUntil: null, pausedReason: null, pausedBy: 'Ben' });
    await resumeLocation(pool, 'club-1');
    expect(await shown()).toMatchObject(OPEN);
  });

  it('ends independently of a pause by the POS', async () => {
    const byPos = (minutes: number): Promise<unknown> =>
      stage.query(
        `UPDATE locations SET pos_paused_at = now() - interval '1 h', pos_paused_until = now() + $1 * interval '1 min'`,
        [minutes],
      );
    await pauseLocation(pool, 'club-1', { by: 'Anna', minutes: 5 });
    await byPos(60);
    await pass();
    expect(await endPauses(pool)).toEqual([]);
    expect(await shown()).toMatchObject({ ...OPEN, paused: true, pausedUntil: expect.any(Date) });
    await pauseLocation(pool, 'club-1', { by: 'Anna', minutes: 5, reason: 'busy' });
    await byPos(0);
    expect(await endPauses(pool)).toEqual([]);
    expect(await shown()).toMatchObject({ paused: true, pausedReason: 'busy', pausedUntil: expect.any(Date) });
    await pass();
    expect(await endPauses(pool)).toEqual(ENDED);
  });

  it('does not end a later pause that a process of the previous version began', async () => {
    await pauseLocation(pool, 'club-1', { by: 'Anna', minutes: 5, reason: 'busy' });
    await stage.query('UPDATE locations SET paused_at = NULL');
    await stage.query(`UPDATE locations SET paused_at = now(), paused_until = now() - interval '1 s'`);
    expect(await endPauses(pool)).toEqual([]);
    expect(await shown()).toMatchObject({ paused: true, pausedUntil: null, pausedReason: null, pausedBy: null });
    await resumeLocation(pool, 'club-1');
  });

  it('is refused with both minutes and an end, or with an end in the past', async () => {
    const pause = async (body: object): Promise<string> => (await operator.post('/locations/club-1/pause', body)).text;
    expect(await pause({ minutes: 5, until: '2099-01-31T18:00:00Z' })).toContain(
      'must not have both minutes and until',
    );
    expect(await pause({ until: '2020-01-31T18:00:00Z' })).toContain('until is in the past');
    expect(await shown()).toMatchObject(OPEN);
  });
});
