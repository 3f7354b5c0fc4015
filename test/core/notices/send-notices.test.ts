import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { NoticeObserved, Observed } from '../../../src/core/domain/observed.ts';
import { guardedFetch } from '../../../src/core/egress/guarded-fetch.ts';
import type { Contact, NoticeReason } from '../../../src/core/contacts/contact.ts';
import { findNotices } from '../../../src/core/notices/find-notices.ts';
import { testContacts, workNotices } from '../../../src/core/notices/send-notices.ts';
import { noticeWays, type Ways } from '../../../src/core/notices/ways.ts';
import { deleteOld } from '../../../src/core/retention/retention-rules.ts';
import { createLog } from '../../../src/observe/create-log.ts';
import { allowedHosts } from '../../../world/network/allowed-loopback.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { readBody, serveHttp, type HttpServer } from '../../../world/network/serve-http.ts';
import { startMailServer, type MailServer } from '../../../world/mail/start-mail-server.ts';
import { until } from '../../../world/processes/until.ts';
import { seedTrouble, setContacts } from './seed-trouble.ts';

const SECRET = 'whsec_XTYffarRi1QBUd/AetVDmnuKbrotu6CgvgG/MxFzTh0=';
const KITCHEN: Contact = { name: 'Kitchen', email: 'kitchen@nord.example', via: 'email' };
const OWNER: Contact = { name: 'Owner', phone: '+4930123456', via: 'webhook', language: 'de' };
const PUBLIC_URL = 'https://expediter.example.com';

type Sent = { headers: Record<string, string>; body: string };
let stage: Stage;
let mail: MailServer;
let gateway: HttpServer;
/** What the receiver got, and what it answers: a status, or nothing. */
const got: Sent[] = [];
let answer: number | 'hang' = 204;
let headers: Record<string, string> = {};
let ways: Ways;
let locationId: string;
let count = 0;
const observed: NoticeObserved[] = [];
const lines: string[] = [];

beforeAll(async () => {
  stage = await startStage();
  mail = await startMailServer();
  gateway = await serveHttp(async (request, response) => {
    got.push({ headers: request.headers as Record<string, string>, body: (await readBody(request)).toString() });
    if (answer !== 'hang') response.writeHead(answer, headers).end();
  });
  ways = noticeWays(
    {
      SMTP_URL: mail.url,
      MAIL_FROM: 'orders@club.example',
      NOTIFY_WEBHOOK_URL: gateway.url,
      NOTIFY_WEBHOOK_SECRET: [SECRET],
    },
    guardedFetch(allowedHosts),
    () => new Date(),
  );
});
beforeEach(async () => {
  mail.mails.length = got.length = observed.length = lines.length = 0;
  mail.refuses = {};
  [answer, headers] = [204, {}];
  locationId = `nord-${(count += 1)}`;
  await stage.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterEach(async () => {
  await stage.query(`WITH quiet AS (UPDATE locations SET contacts = '[]') DELETE FROM notice_messages`);
});
afterAll(() => Promise.all([gateway?.stop(), mail?.stop(), stage?.stop()]));

/** One turn of a process's workers. */
const work = async (by: Ways = ways): Promise<void> => {
  const log = createLog('info', { write: (line: string) => void lines.push(line) });
  const observe = (each: Observed): void => void (each.what === 'notice' && observed.push(each));
  await workNotices({ pool: stage.pool, ways: by, publicUrl: PUBLIC_URL, observe, log }).round();
};
/** Tells the location's contacts about a new order in trouble. */
const tell = async (contacts: Contact[], reason: NoticeReason = 'in_doubt', orders = 1): Promise<string[]> => {
  await setContacts(stage, locationId, contacts);
  const ids = Array.from({ length: orders }, (_, nth) => `${locationId}-${nth}`);
  for (const serviceOrderId of ids) await seedTrouble(stage, reason, { serviceOrderId, locationId });
  await findNotices(stage.pool);
  return ids;
};
const message = async (): Promise<Record<string, unknown>> =>
  (await stage.query('SELECT * FROM notice_messages WHERE location_id = $1', [locationId]))[0] ?? {};
const linksIn = (text: string): string[] =>
  text.match(/https:\/\/expediter\.example\.com\/answer\/exa_[\w-]{49}/g) ?? [];

it.each([1, 2])(
  'a restaurant is notified of a change that was left out of a message during a cancel, once that is refused, of %i orders',
  async (orders) => {
    const [id = ''] = await tell([KITCHEN], 'changed', orders);
    const cancel = (state: string | null) =>
      stage.query('UPDATE orders SET cancellation = $2 WHERE service_order_id = $1', [id, state]);
    await cancel('requested');
    await work();
    expect(mail.mails).toHaveLength(orders - 1);
    await cancel('refused');
    await findNotices(stage.pool, 0);
    await work();
    expect(mail.mails.slice(orders - 1).map(({ headers: text }) => /Subject: .*/.exec(text)?.[0])).toEqual([
      'Subject: Trattoria Nord: Order K472 is changed',
    ]);
    await findNotices(stage.pool, 0);
    await work();
    expect(mail.mails, 'each order is told once').toHaveLength(orders);
  },
);

describe('an e-mail', () => {
  it('names the order, the restaurant and what to do, with a link and without member data', async () => {
    await tell([KITCHEN]);
    await work();
    const [sent] = mail.mails;
    expect(sent).toMatchObject({ from: 'orders@club.example', to: ['kitchen@nord.example'] });
    expect(sent?.headers).toContain('Subject: Trattoria Nord: Is order K472 on your till?');
    expect(sent?.headers).toMatch(/^auto-submitted: auto-generated$/im);
    expect(sent?.body).toMatch(
      /^Trattoria Nord\s+Look whether order K472 of \d\d:\d\d is on your till, then tell us\./,
    );
    expect(linksIn(sent?.body ?? '')).toHaveLength(1);
    expect(JSON.stringify(sent)).not.toMatch(/Ada|Lovelace/);
  });

  it('goes to the Punycode form of an international domain', async () => {
    await tell([{ ...KITCHEN, email: 'kitchen@müller.example' }]);
    await work();
    expect(mail.mails[0]?.headers).toMatch(/^To: .*<kitchen@xn--mller-kva\.example>$/m);
  });

  it('is only one message if it is about several orders', async () => {
    await tell([KITCHEN], 'failed', 3);
    await work();
    expect(mail.mails).toHaveLength(1);
    expect(mail.mails[0]?.headers).toContain('Subject: Trattoria Nord: 3 orders need you');
    expect(mail.mails[0]?.body.match(/Order K472 could not be sent/g)).toHaveLength(3);
  });

  it('is retried while the server is away, and is then sent only once', async () => {
    await tell([KITCHEN]);
    mail.refuses = { data: '451 later' };
    await work();
    expect(await message()).toMatchObject({ failures: 1, problem: expect.stringMatching(/^the mail server/) });
    mail.refuses = {};
    await stage.query('UPDATE notice_messages SET next_attempt_at = now() WHERE location_id = $1', [locationId]);
    await work();
    expect(await message()).toMatchObject({ outcome: 'sent' });
    expect(mail.mails).toHaveLength(1);
    expect(observed.map(({ outcome }) => outcome)).toEqual(['failed', 'sent']);
  });

  it('is given up after an hour, or at once if the address is refused', async () => {
    await tell([KITCHEN]);
    await stage.query(`UPDATE notice_messages SET created_at = now() - interval '61 min' WHERE location_id = $1`, [
      locationId,
    ]);
    mail.refuses = { data: '451 later' };
    await work();
    expect(await message()).toMatchObject({ outcome: 'gave_up' });
    await stage.query('DELETE FROM notice_messages');
    mail.refuses = { rcpt: '550 No such user here' };
    await findNotices(stage.pool);
    await work();
    expect(await message()).toMatchObject({ outcome: 'gave_up', problem: 'the mail server refused the address (550)' });
  });

  // A server answers 5xx for our own faults too, and these can be fixed within the hour.
  it.each([
    [{ mail: '530 5.7.0 Authentication required' }, 'wants a user and a password, or encryption (530)'],
    [{ mail: '550 5.7.1 Sender rejected' }, 'refused our address, MAIL_FROM (550)'],
    [{ rcpt: '530 Authentication required' }, 'wants a user and a password, or encryption (530)'],
    [{ rcpt: '550 5.7.1 Unable to relay' }, 'did not take the address from us (550)'],
    [{ rcpt: '550 relay not permitted' }, 'did not take the address from us (550)'],
    [{ rcpt: '553 5.1.8 Sender domain not found' }, 'did not take the address from us (553)'],
    [{ rcpt: '554 5.7.1 Service unavailable; client host blocked' }, 'did not take the address from us (554)'],
  ])('is tried again if the mail server refuses it for another reason: $1', async (refuses, problem) => {
    await tell([KITCHEN]);
    mail.refuses = refuses;
    await work();
    expect(await message()).toMatchObject({ outcome: null, failures: 1, problem: `the mail server ${problem}` });
  });

  it.each([
    '550 5.1.1 User unknown',
    '550 5.1.1 <author@nord.example>: unknown',
    '550 5.2.1 Mailbox disabled',
    '550 Unrouteable address',
    '551 User not local',
  ])('is given up if the mail server says of the address: %s', async (rcpt) => {
    await tell([KITCHEN]);
    mail.refuses = { rcpt };
    await work();
    expect(await message()).toMatchObject({
      outcome: 'gave_up',
      problem: expect.stringContaining('refused the address'),
    });
  });

  it('has the same Message-ID if it is sent again, and both links work', async () => {
    await tell([KITCHEN]);
    // As a process that dies after the message was taken, and before this is recorded.
    const taken = Promise.withResolvers<void>();
    const dying: Ways['email'] = async (...about) => {
      await ways.email?.(...about);
      taken.resolve();
      return new Promise<never>(() => {});
    };
    void work({ ...ways, email: dying });
    await taken.promise;
    await stage.query(`UPDATE notice_messages SET lease_until = now() WHERE location_id = $1`, [locationId]);
    await work();
    const { links, message_id: id, outcome } = await message();
    expect(outcome).toBe('sent');
    expect(mail.mails.map(({ messageId }) => messageId)).toEqual([
      `<${String(id)}@club.example>`,
      `<${String(id)}@club.example>`,
    ]);
    expect(links).toHaveLength(2);
  });
});

describe('a webhook to the receiver', () => {
  it('is signed as in Standard Webhooks, and is in the language of the contact', async () => {
    await tell([OWNER]);
    await work();
    const { message_id: id } = await message();
    const [sent] = got;
    const event = new Webhook(SECRET).verify(sent?.body ?? '', sent?.headers ?? {}) as Record<string, never>;
    expect(sent?.headers['webhook-id']).toBe(id);
    expect(event).toMatchObject({
      type: 'expediter.restaurant.notified.v1',
      id,
      data: {
        to: { name: 'Owner', phone: '+4930123456' },
        language: 'de',
        locationId,
        locationName: 'Trattoria Nord',
        text: expect.stringMatching(/Sehen Sie nach, ob Bestellung K472 von \d\d:\d\d in Ihrer Kasse ist/) as string,
        orders: [{ callOutCode: 'K472', reason: 'in_doubt', answers: ['there', 'not_there'] }],
        answerUrl: expect.stringMatching(/\/answer\/exa_/) as string,
      },
    });
    expect(sent?.body).not.toMatch(/Ada|Lovelace/);
  });

  it('about a change says in words what is changed', async () => {
    await tell([OWNER], 'changed');
    await work();
    const { data } = JSON.parse(got[0]?.body ?? '') as { data: { orders: object[] } };
    expect(data.orders).toMatchObject([
      { reason: 'changed', answers: ['done', 'too_late'], changes: ['1 × Fries zusätzlich'] },
    ]);
    expect(data.orders[0]).not.toHaveProperty('told');
  });

  it('that is slow does not delay e-mails', async () => {
    answer = 'hang';
    await tell([OWNER, KITCHEN], 'in_doubt', 1);
    void work();
    await until(() => got.length === 1);
    await until(() => mail.mails.length === 1);
  });

  it.each([
    [500, ''],
    [302, ': a redirect is not followed'],
  ])('that is answered %i is sent again', async (status, hint) => {
    answer = status;
    await tell([OWNER]);
    await work();
    expect(await message()).toMatchObject({
      outcome: null,
      failures: 1,
      problem: `the receiver answered ${status}${hint}`,
    });
  });

  it('waits as long as the receiver asks in Retry-After', async () => {
    await tell([OWNER]);
    [answer, headers] = [429, { 'retry-after': '1800' }];
    await work();
    const [row] = await stage.query(
      "SELECT next_attempt_at > now() + interval '29 min' AS waits FROM notice_messages WHERE location_id = $1",
      [locationId],
    );
    expect(row).toEqual({ waits: true });
  });

  it('is given up at once if the receiver says that its URL is gone', async () => {
    await tell([OWNER]);
    answer = 410;
    await work();
    expect(await message()).toMatchObject({ outcome: 'gave_up', problem: expect.stringContaining('gone') });
  });

  it('goes only to an allowed address', async () => {
    const refusing = noticeWays(
      { NOTIFY_WEBHOOK_URL: 'http://127.0.0.2:9', NOTIFY_WEBHOOK_SECRET: [SECRET] },
      guardedFetch(allowedHosts),
      () => new Date(),
    );
    await tell([OWNER]);
    await work(refusing);
    expect((await message())['problem']).toMatch(/127\.0\.0\.2/);
  });
});

describe('a message', () => {
  it('is sent only once although four processes work at the same time', async () => {
    await tell([KITCHEN, OWNER], 'in_doubt', 2);
    await Promise.all([work(), work(), work(), work()]);
    expect(await stage.query('SELECT FROM notice_messages WHERE ended_at IS NULL')).toEqual([]);
    expect([mail.mails.length, got.length]).toEqual([1, 1]);
  });

  it('that one process is sending is not sent by another process', async () => {
    await tell([KITCHEN]);
    const hanging = Promise.withResolvers<void>();
    void work({ ...ways, email: () => new Promise<never>(() => hanging.resolve()) });
    await hanging.promise;
    const lease = (await message())['lease_id'];
    const later = `${locationId}-later`;
    await stage.addLocation(later, { ordersUrl: 'http://127.0.0.1:9/orders' });
    await setContacts(stage, later, [KITCHEN]);
    await seedTrouble(stage, 'late', { serviceOrderId: later, locationId: later });
    await findNotices(stage.pool);
    await work();
    expect(mail.mails.map(({ headers }) => /has not reached/.test(headers))).toEqual([true]);
    expect(await message()).toMatchObject({ outcome: null, lease_id: lease });
  });

  it('leaves out orders that are settled before it is sent, and is not sent if no order is left', async () => {
    const [first = '', second = ''] = await tell([KITCHEN], 'in_doubt', 2);
    const settle = (id: string): Promise<unknown> =>
      stage.query(`UPDATE placements SET state = 'sent', finished_at = now() WHERE service_order_id = $1`, [id]);
    await settle(first);
    await work();
    expect(mail.mails[0]?.headers).toContain('Is order K472 on your till?');
    await stage.query('DELETE FROM notice_messages');
    await findNotices(stage.pool);
    await settle(second);
    await work();
    expect(await message()).toMatchObject({ outcome: 'settled' });
    expect(mail.mails).toHaveLength(1);
  });

  it('waits for a process that can send it, and is given up after 70 minutes without such a process', async () => {
    await tell([KITCHEN]);
    await work({ email: undefined, webhook: undefined });
    await stage.query(`UPDATE notice_messages SET created_at = now() - interval '69 min'`);
    await findNotices(stage.pool);
    const { rows } = await stage.pool.query('SELECT FROM notice_messages WHERE ended_at IS NULL AND failures = 0');
    expect(rows).toHaveLength(1);
    await stage.query(`UPDATE notice_messages SET created_at = now() - interval '71 min'`);
    await findNotices(stage.pool);
    expect(await message()).toMatchObject({ outcome: 'gave_up', problem: 'no process is set up to send it' });
  });

  it('is not ended by a process that lost its lease', async () => {
    await tell([KITCHEN]);
    const [began, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const sending = work({ ...ways, email: async () => (began.resolve(), slow.promise) });
    await began.promise;
    await stage.query('UPDATE notice_messages SET lease_id = gen_random_uuid()');
    slow.resolve();
    await sending;
    expect(await message()).toMatchObject({ outcome: null, ended_at: null });
  });

  it('is sent even after an hour if a process can send it only then', async () => {
    await tell([KITCHEN]);
    await stage.query(`UPDATE notice_messages SET created_at = now() - interval '61 min', failures = 9`);
    await work();
    expect(await message()).toMatchObject({ outcome: 'sent' });
  });

  it('leaves no link, address or number in the log', async () => {
    answer = 500;
    mail.refuses = { data: '554 no' };
    await tell([KITCHEN, OWNER]);
    await work();
    expect(observed).toHaveLength(2);
    expect(JSON.stringify([observed, lines])).not.toMatch(/exa_|nord\.example|4930123456/);
  });
});

it('a test message goes to each contact with `via`, and the answer names each failure', async () => {
  await setContacts(stage, locationId, [KITCHEN, OWNER, { name: 'Shown', email: 'shown@nord.example' }]);
  answer = 503;
  expect(await testContacts(stage.pool, ways, locationId)).toEqual({
    locationId,
    contacts: [
      { contact: 'Kitchen', via: 'email', problem: null },
      { contact: 'Owner', via: 'webhook', problem: 'the receiver answered 503' },
    ],
  });
  expect(mail.mails[0]?.body).toContain('This is a test.');
  // Nobody can type the subject of a message to a stranger.
  expect(mail.mails[0]?.headers).toMatch(/^subject: Test\r?$/im);
  expect(await testContacts(stage.pool, ways, 'nowhere')).toBeUndefined();
});

it('notices are deleted with their message', async () => {
  await tell([KITCHEN]);
  await deleteOld(stage.pool, 'deletion of old notices', 60);
  expect(await message()).toMatchObject({ location_id: locationId });
  await stage.query(`UPDATE notice_messages SET created_at = now() - interval '61 s'`);
  await deleteOld(stage.pool, 'deletion of old notices', 60);
  expect(await stage.query('SELECT FROM notices WHERE location_id = $1', [locationId])).toEqual([]);
});
