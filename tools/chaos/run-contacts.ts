import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import { TryAgain } from '../../src/core/domain/errors.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { readBody, serveHttp } from '../../world/network/serve-http.ts';
import { startMailServer } from '../../world/mail/start-mail-server.ts';
import type { System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { chance, pick, shuffle } from './chance.ts';
import { startFaultProxy } from './fault-proxy.ts';
import { startPair } from './start-pair.ts';

export type ContactsResult = {
  orders: number;
  /** Orders that the POS got more than once. */
  ticketsWrong: number;
  /** Messages that came, repeats included. */
  messages: number;
  /** How many of them came after the first had an unclear end, and how many after it was taken for certain. */
  repeats: number;
  repeatsWrong: number;
  answers: number;
};

const RESTAURANTS = 20;
const ORDERS = 60;
const ORDERS_MS = 60_000;
/** All messages are told within this time after the last fault: a contact gets one a minute. */
const SETTLE_MS = 300_000;
const GATEWAY_FAULTS = ['none', 'none', 'none', 'slow', 'refuses', 'takes and refuses', 'takes and hangs'] as const;
/** Longer than the service waits for the gateway. */
const HANGS_MS = 20_000;
const MAIL_FAULTS = ['none', 'refuses', 'closed', 'hangs', 'breaks'] as const;
type MailFault = (typeof MAIL_FAULTS)[number];
const FAULT_MS = 7_000;
/** The service waits for the mail server for up to 20 s. */
const MAIL_HANGS_MS = 25_000;
const LATENCY_MS = 300;
const BREAKS_EVERY_MS = 700;
/** The most time from a mail's arrival to its clear end. */
const NEAR_MS = 2_000;
const LOOK_MS = 100;
const SECRET = 'whsec_L/rb+aql0bsOw4aUsQ6gK6J2X7JAixubT2gLuB2QMno=';
const PUBLIC_URL = 'https://chaos.example.com';

/** A POS that takes each order and loses its answer, so that only a person can settle the doubt. */
const tickets = new Map<string, number>();
const blind: Provider = {
  integration: 'blind',
  settings: z.object({}),
  deduplicates: false,
  async createOrder({ serviceOrderId }) {
    tickets.set(serviceOrderId, (tickets.get(serviceOrderId) ?? 0) + 1);
    throw new TryAgain('no answer', { sent: true });
  },
  translateWebhook: () => [],
};

/** A message as a contact got it: whom it was for, its id, and the orders' codes in it. */
type Told = { to: string; id: string; codes: string[]; answerUrl: string; isClear: boolean };

/**
 * Orders come into doubt while the mail server refuses, closes its port, hangs or loses its connections, and the gateway
 * is slow, hangs, refuses, or refuses what it has taken. Each restaurant has two contacts. Some of them answer, twice at
 * the same moment.
 */
export async function runContacts(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: ContactsResult; complaints: string[] }> {
  const told: Told[] = [];
  const mail = await startFaultyMail(told);
  let nth = 0;
  const gateway = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    const { id, data } = new Webhook(SECRET).verify(body, request.headers as Record<string, string>) as Notified;
    const fault = pick(GATEWAY_FAULTS, chance(seed, 'gateway', (nth += 1)));
    if (fault === 'slow') await sleep(3_000);
    if (fault !== 'refuses') {
      const codes = data.orders.map(({ callOutCode }) => callOutCode);
      told.push({ to: data.to.phone, id, codes, answerUrl: data.answerUrl, isClear: !fault.startsWith('takes') });
    }
    if (fault.endsWith('hangs')) await sleep(HANGS_MS);
    response.writeHead(fault.endsWith('refuses') ? 503 : 204).end();
  });
  const system = await startPair({
    providers: [blind],
    env: {
      SMTP_URL: mail.url,
      MAIL_FROM: 'orders@chaos.example.com',
      NOTIFY_WEBHOOK_URL: gateway.url,
      NOTIFY_WEBHOOK_SECRET: SECRET,
      PUBLIC_URL,
    },
  });
  try {
    print(`seed ${seed}: ${ORDERS} orders in doubt at ${RESTAURANTS} restaurants, with two contacts each`);
    const restaurants = Array.from({ length: RESTAURANTS }, (_, each) => `restaurant-${each}`);
    for (const id of restaurants) await setUp(system, id);
    const orders = new Map<string, { code: string; at: string }>();
    const placeOrders = async (): Promise<void> => {
      for (let order = 0; order < ORDERS; order += 1) {
        const at = pick(restaurants, chance(seed, 'where', order));
        const { serviceOrderId } = await system.placeOrder({ locationId: at });
        await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'in_doubt');
        orders.set(serviceOrderId, { code: String((await system.order(serviceOrderId))?.['call_out_code']), at });
        await sleep((ORDERS_MS / ORDERS) * 2 * chance(seed, 'pause', order));
      }
    };
    let ends = Infinity;
    const disturb = async (): Promise<void> => {
      for (const round of [1, 2]) for (const fault of shuffle(MAIL_FAULTS, seed, 'mail', round)) await mail.fail(fault);
      ends = performance.now() + SETTLE_MS;
    };
    const disturbed = Promise.all([placeOrders(), disturb()]);
    let answers = 0;
    const asked = new Set<string>();
    for (; performance.now() < ends && (!Number.isFinite(ends) || (await isOpen(system))); await sleep(500)) {
      for (const message of told.filter(({ answerUrl }) => !asked.has(answerUrl))) {
        asked.add(message.answerUrl);
        if (chance(seed, 'answers', message.codes.join()) < 0.5) continue;
        answers += await answer(system, message.answerUrl);
      }
    }
    await disturbed;
    const settled = await system.query(
      `SELECT p.service_order_id AS id, p.state, (SELECT count(*)::int FROM audit a WHERE a.service_order_id = p.service_order_id
                AND a.action = 'resolve' AND EXISTS (
                  SELECT FROM audit_outcomes o WHERE o.audit_id = a.audit_id AND o.outcome = 'done')) AS resolved,
              EXISTS (SELECT FROM notices n WHERE n.service_order_id = p.service_order_id AND n.answer = 'there') AS answered
       FROM placements p`,
    );
    const answered = new Set(settled.flatMap(({ id, answered }) => (answered === true ? [String(id)] : [])));
    const complaints = judge({ orders, answered, told });
    for (const { id, state, resolved, answered: isAnswered } of settled) {
      if ((state === 'sent') !== isAnswered)
        complaints.push(`order ${String(id)} is ${String(state)} after its answer`);
      if (isAnswered === true && resolved !== 1)
        complaints.push(`order ${String(id)} was resolved ${String(resolved)} times`);
    }
    if (await isOpen(system)) complaints.push('messages were not sent or given up in time');
    const wrong = [...tickets].filter(([, count]) => count !== 1);
    complaints.push(...wrong.map(([id, count]) => `order ${id} has ${count} tickets`));
    const same = [...Map.groupBy(told, ({ to, id }) => `${to} ${id}`)];
    const again = same.filter(([, each]) => each.slice(0, -1).some(({ isClear }) => isClear)).map(([id]) => id);
    complaints.push(...again.map((id) => `${id} came again after it was taken`));
    const counts = {
      orders: orders.size,
      ticketsWrong: wrong.length,
      messages: told.length,
      repeats: told.length - same.length,
      repeatsWrong: again.length,
      answers,
    };
    if (answers === 0) complaints.push('no contact answered');
    if (counts.repeats === 0) complaints.push('no fault met a message');
    return { result: counts, complaints };
  } finally {
    await system.stop();
    await Promise.all([gateway.stop(), mail.stop()]);
  }
}

/** Starts a mail server behind a network that fails. Each mail that it takes is added to `told`. */
async function startFaultyMail(told: Told[]) {
  const mail = await startMailServer();
  const proxy = await startFaultProxy({ targetPort: Number(new URL(mail.url).port) });
  const { faults } = proxy;
  let isClear = true;
  const looking = setInterval(() => {
    for (const { to, messageId, body } of mail.mails.splice(0))
      told.push({ to: to[0] ?? '', id: messageId, codes: codesIn(body), answerUrl: urlIn(body), isClear });
  }, LOOK_MS);
  return {
    url: proxy.through(mail.url),
    async fail(fault: MailFault): Promise<void> {
      isClear = fault !== 'hangs' && fault !== 'breaks';
      await sleep(NEAR_MS);
      if (fault === 'refuses') mail.refuses = { data: '451 no' };
      if (fault === 'closed') proxy.refuse();
      if (fault === 'hangs') faults.blackhole = true;
      if (fault === 'breaks') faults.latencyMs = LATENCY_MS;
      const ends = performance.now() + (fault === 'hangs' ? MAIL_HANGS_MS : FAULT_MS);
      while (performance.now() < ends) {
        await sleep(BREAKS_EVERY_MS);
        if (fault === 'breaks') proxy.resetAll();
      }
      mail.refuses = {};
      faults.blackhole = false;
      faults.latencyMs = 0;
      await proxy.accept();
      await sleep(NEAR_MS);
      isClear = true;
    },
    async stop(): Promise<void> {
      clearInterval(looking);
      await proxy.stop();
      await mail.stop();
    },
  };
}

type Notified = {
  id: string;
  data: { to: { phone: string }; orders: { callOutCode: string }[]; answerUrl: string };
};

const codesIn = (text: string): string[] => [...new Set(text.match(/\b[A-Z]\d{3}\b/g))];
const urlIn = (body: string): string => new RegExp(`${PUBLIC_URL}/answer/\\S+`).exec(body)?.[0] ?? '';
const mailOf = (restaurant: string): string => `${restaurant}@chaos.example.com`;
const phoneOf = (restaurant: string): string => `+49301234${restaurant.slice('restaurant-'.length).padStart(4, '0')}`;

async function setUp(system: System, id: string): Promise<void> {
  await system.addLocation(id, {}, 'blind');
  const contacts = [
    { name: 'Kitchen', email: mailOf(id), via: 'email', afterMinutes: 0 },
    { name: 'Owner', phone: phoneOf(id), via: 'webhook', afterMinutes: 0 },
  ];
  await system.query('UPDATE locations SET contacts = $2 WHERE location_id = $1', [id, JSON.stringify(contacts)]);
}

/** Whether something is still to be told, or to be sent again. */
async function isOpen(system: System): Promise<boolean> {
  const [row] = await system.query(
    `SELECT EXISTS (SELECT FROM notice_messages WHERE ended_at IS NULL)
       OR EXISTS (SELECT FROM notices WHERE message_id IS NULL)
       OR EXISTS (SELECT FROM placements p WHERE p.state = 'in_doubt' AND NOT EXISTS (
            SELECT FROM notices n WHERE n.service_order_id = p.service_order_id)) AS open`,
  );
  return row?.['open'] === true;
}

/** Says of each order of a message that it is there, twice at once. @returns the number of orders whose answer was taken */
async function answer(system: System, answerUrl: string): Promise<number> {
  const path = answerUrl.slice(PUBLIC_URL.length);
  const page = await (await fetch(`${system.urls[0]}${path}`)).text();
  const notices = [...page.matchAll(/name="notice" value="([^"]+)"/g)].map(([, notice = '']) => notice);
  const say = (notice: string, process: number): Promise<Response> =>
    fetch(`${system.urls[process]}${path}`, {
      method: 'POST',
      body: new URLSearchParams({ notice, answer: 'there' }),
      redirect: 'manual',
    });
  let taken = 0;
  for (const notice of notices) {
    const statuses = (await Promise.all([say(notice, 0), say(notice, 1)])).map(({ status }) => status);
    if (statuses.includes(303)) taken += 1;
  }
  return taken;
}

function judge(about: {
  orders: ReadonlyMap<string, { code: string; at: string }>;
  answered: ReadonlySet<string>;
  told: readonly Told[];
}): string[] {
  const { orders, answered, told } = about;
  return [...orders].flatMap(([id, { code, at }]) =>
    [mailOf(at), phoneOf(at)].flatMap((contact) => {
      const messages = told.filter(({ to, codes }) => to === contact && codes.includes(code));
      const count = new Set(messages.map((each) => each.id)).size;
      if (count > 1) return [`${contact} was told ${count} times about order ${id}`];
      // An answer of the other contact settles the doubt.
      return count === 0 && !answered.has(id) ? [`${contact} was not told about order ${id}`] : [];
    }),
  );
}
