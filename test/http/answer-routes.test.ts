import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Contact, NoticeReason } from '../../src/core/contacts/contact.ts';
import { answerNotice, findAnswerPage, type AnswerPage } from '../../src/core/notices/answer-notice.ts';
import { findNotices } from '../../src/core/notices/find-notices.ts';
import { workNotices } from '../../src/core/notices/send-notices.ts';
import { makeToken } from '../../src/core/domain/make-token.ts';
import { BURST } from '../../src/http/throttle-failures.ts';
import { seedTrouble, setContacts } from '../core/notices/seed-trouble.ts';
import { sendAsIs, type OperatorAnswer } from '../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { until } from '../../world/processes/until.ts';

const KITCHEN: Contact = { name: 'Kitchen', email: 'kitchen@nord.example', via: 'email' };
const OWNER: Contact = { name: 'Owner <b>', phone: '+4930123456', via: 'webhook', language: 'de' };

let stage: Stage;
let count = 0;
let locationId: string;
let order: string;

beforeAll(async () => {
  stage = await startStage();
});
beforeEach(async () => {
  await stage.query(`UPDATE locations SET contacts = '[]'`);
  locationId = `nord-${(count += 1)}`;
  order = `${locationId}-order`;
  await stage.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => stage?.stop());

/** Tells the contacts about an order in trouble. @returns the path of each one's link, by the contact's name */
async function tell(reason: NoticeReason, contacts: Contact[] = [KITCHEN]): Promise<Record<string, string>> {
  await setContacts(stage, locationId, contacts);
  await seedTrouble(stage, reason, { serviceOrderId: order, locationId });
  await findNotices(stage.pool);
  const links: Record<string, string> = {};
  const keep = async (_id: string, told: { contact: Contact; answerUrl: string | null }): Promise<void> => {
    links[told.contact.name ?? ''] = told.answerUrl ?? '';
  };
  const ways = { email: keep, webhook: keep };
  const worker = workNotices({ pool: stage.pool, ways, publicUrl: '', observe() {}, log: stage.app.log });
  worker.start();
  await until(() => Object.keys(links).length === contacts.length);
  await until(async () => (await stage.query('SELECT FROM notice_messages WHERE ended_at IS NULL')).length === 0);
  await worker.stop();
  return links;
}
const read = (path = ''): Promise<OperatorAnswer> => sendAsIs(stage.app, path);
const noticeIn = ({ text }: OperatorAnswer): string => /name="notice" value="([^"]+)"/.exec(text)?.[1] ?? '';
const post = (path: string, notice: string, answer: string): Promise<OperatorAnswer> =>
  sendAsIs(stage.app, path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ notice, answer }).toString(),
  });
/** Presses a button of the page. */
const press = async (path: string, answer: string): Promise<OperatorAnswer> =>
  post(path, noticeIn(await read(path)), answer);
const buttonsOf = ({ text }: OperatorAnswer): string[] =>
  [...text.matchAll(/name="answer" value="(\w+)"/g)].map((match) => match[1] ?? '');
const audits = async (): Promise<unknown[]> =>
  stage.query(
    `SELECT actor_kind, actor_name, action, outcome, after FROM audit LEFT JOIN audit_outcomes USING (audit_id)
     WHERE service_order_id = $1 ORDER BY audit_id`,
    [order],
  );
const cancellation = async (): Promise<unknown> =>
  (await stage.query('SELECT state FROM cancellations WHERE service_order_id = $1', [order]))[0]?.['state'];

it.each(['constructor', '__proto__', 'toString;q=1', 'hasOwnProperty-x'])(
  'a browser with the language "%s" gets every page in English',
  async (language) => {
    const headers = { 'accept-language': language };
    const unknown = await sendAsIs(stage.app, '/answer/exa_wrong', { headers });
    expect([unknown.status, unknown.text]).toEqual([404, expect.stringContaining('<html lang="en">')]);
    const noForm = await sendAsIs(stage.app, '/answer/exa_wrong', { method: 'POST', headers, body: 'x' });
    expect([noForm.status, noForm.text]).toEqual([415, expect.stringContaining('<html lang="en">')]);
  },
);

describe('the page of an answer link', () => {
  it('asks about the order in the language of the contact', async () => {
    const { Kitchen = '', 'Owner <b>': owner = '' } = await tell('in_doubt', [KITCHEN, OWNER]);
    const page = await read(Kitchen);
    expect(page.status).toBe(200);
    expect(page.text).toMatch(/<h1>Trattoria Nord<\/h1>/);
    expect(page.text).toMatch(/Look whether order K472 of \d\d:\d\d is on your till/);
    expect(buttonsOf(page)).toEqual(['there', 'not_there']);
    expect(page.text).not.toMatch(/<script|Ada|Lovelace|nord\.example/);
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'.*form-action 'self'/);
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(page.headers.get('cache-control')).toBe('no-store');
    const german = await read(owner);
    expect(german.text).toMatch(/<html lang="de">/);
    expect(german.text).toContain('Sie ist nicht da');
  });

  it('changes nothing when it is opened, because programs open links in e-mails', async () => {
    const { Kitchen = '' } = await tell('in_doubt');
    for (const method of ['GET', 'HEAD', 'GET', 'OPTIONS']) await sendAsIs(stage.app, Kitchen, { method });
    expect(await audits()).toEqual([]);
    expect(await stage.placement(order)).toMatchObject({ state: 'in_doubt' });
    expect(buttonsOf(await read(Kitchen))).toHaveLength(2);
  });

  it('is not found for a wrong link, or for a link older than a day', async () => {
    const { Kitchen = '' } = await tell('in_doubt');
    expect((await read(`/answer/${makeToken('exa_')}`)).status).toBe(404);
    expect((await read('/answer/exa_wrong')).status).toBe(404);
    await stage.query(`UPDATE notice_messages SET created_at = now() - interval '25 h' WHERE location_id = $1`, [
      locationId,
    ]);
    const old = await read(Kitchen);
    expect([old.status, old.text.includes('This link does not work any more')]).toEqual([404, true]);
    expect((await post(Kitchen, 'x', 'there')).status).toBe(404);
    expect(await stage.placement(order)).toMatchObject({ state: 'in_doubt' });
  });
});

describe('an answer of a contact', () => {
  it('that the ticket is there changes an order in doubt to sent', async () => {
    const { Kitchen = '' } = await tell('in_doubt');
    const before = stage.woken();
    const answered = await press(Kitchen, 'there');
    expect([answered.status, `/answer/${answered.headers.get('location')}`]).toEqual([303, Kitchen]);
    expect(await stage.placement(order)).toMatchObject({ state: 'sent' });
    expect(stage.woken()).toBe(before + 1);
    expect(await audits()).toEqual([
      {
        actor_kind: 'nobody',
        actor_name: 'contact: Kitchen at Trattoria Nord',
        action: 'resolve',
        outcome: 'done',
        after: 'there',
      },
    ]);
  });

  it('that the ticket is not there changes an order in doubt to waiting', async () => {
    const { Kitchen = '' } = await tell('in_doubt');
    await press(Kitchen, 'not_there');
    expect(await stage.placement(order)).toMatchObject({ state: 'waiting', finished_at: null });
  });

  it.each([
    ['cancelled', 'cancelled'],
    ['too_late', 'refused'],
  ])('"%s" about a cancellation changes the cancellation to %s', async (answer, state) => {
    const { Kitchen = '' } = await tell('cancel_by_phone');
    expect(buttonsOf(await read(Kitchen))).toEqual(['cancelled', 'too_late']);
    await press(Kitchen, answer);
    expect(await cancellation()).toBe(state);
    expect(await audits()).toMatchObject([{ action: 'conclude cancel', after: answer }]);
  });

  it.each([
    ['done', 'applied'],
    ['too_late', 'too_late'],
  ])('"%s" about a change by the platform is published as %s', async (answer, change) => {
    const { Kitchen = '', 'Owner <b>': owner = '' } = await tell('changed', [KITCHEN, OWNER]);
    const page = await read(Kitchen);
    expect(page.text).toContain('K472: 1 × Fries added.');
    expect((await read(owner)).text).toContain('K472: 1 × Fries zusätzlich.');
    expect(buttonsOf(page)).toEqual(['done', 'too_late']);
    await press(Kitchen, answer);
    expect(await stage.query('SELECT change FROM orders WHERE service_order_id = $1', [order])).toEqual([{ change }]);
    expect(await audits()).toMatchObject([{ action: 'answer change', after: answer }]);
    expect(buttonsOf(await read(owner))).toEqual([]);
  });

  it('about a change is not taken for a later change', async () => {
    const { Kitchen = '' } = await tell('changed');
    const notice = noticeIn(await read(Kitchen));
    await stage.query(`UPDATE orders SET changed_at = now() WHERE service_order_id = $1`, [order]);
    expect((await post(Kitchen, notice, 'done')).status).toBe(303);
    expect(await stage.query('SELECT change FROM orders WHERE service_order_id = $1', [order])).toEqual([
      { change: 'not_applied' },
    ]);
  });

  it.each(['late', 'failed'] as const)(
    '"I know" about an order that is %s does not change the order',
    async (reason) => {
      const { Kitchen = '' } = await tell(reason);
      const before = await stage.placement(order);
      await press(Kitchen, 'seen');
      expect(await stage.placement(order)).toEqual(before);
      expect((await read(Kitchen)).text).toMatch(/Kitchen answered at \d\d:\d\d: “I know”\./);
    },
  );

  it('changes nothing if another contact answered before, and shows that answer', async () => {
    const { Kitchen = '', 'Owner <b>': owner = '' } = await tell('in_doubt', [KITCHEN, OWNER]);
    const [mine, other] = [noticeIn(await read(Kitchen)), noticeIn(await read(owner))];
    await post(owner, other, 'there');
    for (const [path, notice] of [
      [Kitchen, mine],
      [owner, other],
    ] as const) {
      expect((await post(path, notice, 'not_there')).status).toBe(303);
    }
    expect(await stage.placement(order)).toMatchObject({ state: 'sent' });
    expect((await read(Kitchen)).text).toMatch(/Owner &lt;b&gt; answered at \d\d:\d\d: “It is there”\./);
    expect((await read(owner)).text).toMatch(/Owner &lt;b&gt; hat um \d\d:\d\d geantwortet: „Sie ist da“\./);
    expect(buttonsOf(await read(Kitchen))).toEqual([]);
    expect(await audits()).toHaveLength(1);
  });

  it('is stored once if two contacts answer at the same moment', async () => {
    const { Kitchen = '', 'Owner <b>': owner = '' } = await tell('in_doubt', [KITCHEN, OWNER]);
    const [mine, other] = [noticeIn(await read(Kitchen)), noticeIn(await read(owner))];
    await Promise.all([post(Kitchen, mine, 'there'), post(owner, other, 'not_there')]);
    const answers = await stage.query('SELECT answer FROM notices WHERE service_order_id = $1 AND answer IS NOT NULL', [
      order,
    ]);
    const { state } = (await stage.placement(order)) ?? {};
    expect(answers).toEqual([{ answer: state === 'sent' ? 'there' : 'not_there' }]);
  });

  it('is refused if another answer about the cancellation comes at the same moment', async () => {
    const links = Object.values(await tell('cancel_by_phone', [KITCHEN, OWNER]));
    // Both pages are read before the first answer is stored.
    const pages = await Promise.all(links.map((link) => findAnswerPage(stage.pool, link.replace('/answer/', ''))));
    for (const [nth, answer] of ['too_late', 'cancelled'].entries()) {
      const page = pages[nth] as AnswerPage;
      await answerNotice(stage.pool, page, { noticeId: page.orders[0]?.noticeId ?? '', answer }, { source: 'test' });
    }
    expect(await cancellation()).toBe('refused');
    expect(await audits()).toMatchObject([{ outcome: 'done' }, { outcome: 'refused' }]);
  });

  it('changes nothing after an operator has settled the order', async () => {
    const { Kitchen = '' } = await tell('in_doubt');
    const notice = noticeIn(await read(Kitchen));
    await stage.query(`UPDATE placements SET state = 'sent', finished_at = now() WHERE service_order_id = $1`, [order]);
    await post(Kitchen, notice, 'not_there');
    expect((await read(Kitchen)).text).toContain('This needs no answer any more.');
    expect(await audits()).toEqual([]);
  });

  it('is answered 409 while the service is working on the order', async () => {
    const { Kitchen = '' } = await tell('in_doubt');
    await stage.query(`UPDATE placements SET lease_until = now() + interval '1 min' WHERE service_order_id = $1`, [
      order,
    ]);
    const busy = await press(Kitchen, 'there');
    expect([busy.status, busy.text.includes('Try again in a minute')]).toEqual([409, true]);
    expect(buttonsOf(busy)).toHaveLength(2);
    expect(await stage.query('SELECT answer FROM notices WHERE service_order_id = $1', [order])).toEqual([
      { answer: null },
    ]);
  });

  it('that does not fit the question is answered 400', async () => {
    const { Kitchen = '' } = await tell('in_doubt');
    const notice = noticeIn(await read(Kitchen));
    for (const answer of ['seen', 'cancelled', '', '__proto__'])
      expect((await post(Kitchen, notice, answer)).status).toBe(400);
    for (const other of ['', 'x', '00000000-0000-4000-8000-000000000000'])
      expect((await post(Kitchen, other, 'there')).status).toBe(400);
    for (const type of ['application/json', 'text/plain', 'image/png']) {
      const headers = { 'content-type': type };
      const { status } = await sendAsIs(stage.app, Kitchen, { method: 'POST', headers, body: '{}' });
      expect(status).toBe(415);
    }
    expect(await stage.placement(order)).toMatchObject({ state: 'in_doubt' });
    expect(await audits()).toEqual([]);
  });
});

it('no answer link is in the log', () => {
  expect(stage.logged.filter((line) => line.includes('exa_'))).toEqual([]);
});

it('a page of an answer link is shown even if the same source has tried many wrong links', async () => {
  const { Kitchen = '' } = await tell('in_doubt');
  const wrong = (nth: number): string => (nth % 2 === 0 ? `/answer/${makeToken('exa_')}` : '/answer/exa_wrong');
  const tries = await Promise.all(Array.from({ length: 3 * BURST }, (_, nth) => read(wrong(nth))));
  expect(new Set(tries.map(({ status }) => status))).toEqual(new Set([404]));
  expect((await read(Kitchen)).status).toBe(200);
});
