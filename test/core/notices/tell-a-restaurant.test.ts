import { afterAll, beforeAll, expect, it } from 'vitest';
import { TryAgain } from '../../../src/core/domain/errors.ts';
import { askOperator, OPERATOR_TOKEN } from '../../../world/system/ask-operator.ts';
import { plainProvider } from '../../support/location-rules.ts';
import { startMailServer, type MailServer } from '../../../world/mail/start-mail-server.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';
import { setContacts } from './seed-trouble.ts';

let mail: MailServer;
let system: System;
let answers = 0;

beforeAll(async () => {
  mail = await startMailServer();
  system = await startSystem({
    stepped: ['placements', 'refreshes', 'notices', 'relay'],
    providers: [
      plainProvider('blind', {
        deduplicates: false,
        async createOrder() {
          answers += 1;
          throw new TryAgain('no answer', { sent: true });
        },
      }),
      plainProvider('till', { createOrder: async () => ({ providerOrderId: '8F2K' }) }),
    ],
    env: {
      SMTP_URL: mail.url,
      MAIL_FROM: 'orders@club.example',
      PUBLIC_URL: 'https://expediter.example.com',
      OPERATOR_TOKEN,
    },
  });
  await system.addLocation('nord', {}, 'blind');
  await system.addLocation('süd', {}, 'till');
});
afterAll(() => Promise.all([system?.stop(), mail?.stop()]));

async function turn(): Promise<void> {
  await system.round('placements');
  await system.round('refreshes');
  await system.round('finding of notices');
  await system.finish('notices');
  await system.finish('relay');
}

/** Presses a button of the page behind the link of a message. @returns the page after it */
async function answer(message = '', said: string): Promise<string> {
  const path = /https:\/\/expediter\.example\.com(\S+)/.exec(message)?.[1] ?? '';
  const page = await (await fetch(`${system.urls[0]}${path}`)).text();
  const notice = /name="notice" value="([^"]+)"/.exec(page)?.[1] ?? '';
  const body = new URLSearchParams({ notice, answer: said });
  return (await fetch(`${system.urls[0]}${path}`, { method: 'POST', body })).text();
}

it('a restaurant settles the doubt about its order by the link in its message, and the timeline shows the answer', async () => {
  await setContacts(system, 'nord', [{ name: 'Kitchen', email: 'kitchen@nord.example', via: 'email' }]);
  const { serviceOrderId } = await system.placeOrder({ locationId: 'nord' });
  await turn();
  const [sent] = mail.mails;
  const { call_out_code: code } = (await system.order(serviceOrderId)) ?? {};
  expect(sent?.headers).toContain(`Is order ${String(code)} on your till?`);
  expect(await answer(sent?.body, 'there')).toContain('Kitchen answered');
  await turn();
  expect(system.live(serviceOrderId).at(-1)).toMatchObject({ memberState: 'sent' });
  expect(answers, 'the order was not sent again').toBe(1);
  const { body } = await (await askOperator(system.operatorUrls[0] ?? '')).get(`/orders/${serviceOrderId}`);
  const story = (body['timeline'] as { what: string; details: object }[]).filter(({ what }) =>
    what.startsWith('restaurant'),
  );
  const about = { reason: 'in_doubt', via: 'email', contact: 'Kitchen', outcome: 'sent' };
  expect(story).toMatchObject([
    { what: 'restaurant notified', details: about },
    { what: 'restaurant answered', details: { ...about, answer: 'there' } },
  ]);
  expect(mail.mails).toHaveLength(1);
  expect(system.logged.filter((line) => /exa_|kitchen@/.test(line))).toEqual([]);
});

it('a restaurant is notified of a change by the platform in a sentence, and the topic and the list show its answer', async () => {
  await setContacts(system, 'süd', [{ name: 'Kitchen', email: 'kitchen@sued.example', via: 'email' }]);
  const order = await system.placeOrder({ locationId: 'süd' });
  const { serviceOrderId } = order;
  await turn();
  const { call_out_code: code } = (await system.order(serviceOrderId)) ?? {};
  const [first] = order.items;
  const items = [
    ...order.items,
    { ...first, name: 'Onion rings', quantity: 1, modifiers: [], notes: undefined },
  ] as typeof order.items;
  system.platform.orders.set(serviceOrderId, { ...order, items, notes: 'For Grace, without onions' });
  for (const _twice of [1, 2]) {
    await system.signal(serviceOrderId);
    await turn();
  }
  const operator = await askOperator(system.operatorUrls[0] ?? '');
  const listed = async (): Promise<unknown> => (await operator.get('/orders?needs=operator')).body['orders'];
  const changes = ['1 × Onion rings added', 'the note of the order is changed'];
  expect(await listed()).toMatchObject([{ serviceOrderId, needsOperator: true, change: 'not_applied', changes }]);
  const sent = mail.mails.filter(({ to }) => to.includes('kitchen@sued.example'));
  expect(sent, 'told once').toHaveLength(1);
  expect(sent[0]?.headers).toContain(`Order ${String(code)} is changed`);
  const text = sent[0]?.body ?? '';
  expect(text).toContain(`${String(code)}: 1 × Onion rings added, the note of the order is changed. Tell us whether`);
  expect(JSON.stringify(sent)).not.toMatch(/Grace|without onions/);
  expect(await answer(text, 'done')).toContain('Kitchen answered');
  await turn();
  expect(await listed()).toEqual([]);
  const live = system.live(serviceOrderId);
  expect(live.map(({ change }) => change)).toEqual([undefined, undefined, 'not_applied', 'applied']);
  expect(live.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
  const { body } = await operator.get(`/orders/${serviceOrderId}`);
  expect(body).toMatchObject({
    change: { state: 'applied', waits: false, changes },
    actions: [{ action: 'answer change', outcome: 'done', after: 'done' }],
    notices: [{ reason: 'changed', outcome: 'sent', answer: 'done' }],
  });
});
