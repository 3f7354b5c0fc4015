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
    stepped: ['placements', 'notices', 'relay'],
    providers: [
      plainProvider('blind', {
        deduplicates: false,
        async createOrder() {
          answers += 1;
          throw new TryAgain('no answer', { sent: true });
        },
      }),
    ],
    env: {
      SMTP_URL: mail.url,
      MAIL_FROM: 'orders@club.example',
      PUBLIC_URL: 'https://expediter.example.com',
      OPERATOR_TOKEN,
    },
  });
  await system.addLocation('nord', {}, 'blind');
});
afterAll(() => Promise.all([system?.stop(), mail?.stop()]));

async function turn(): Promise<void> {
  await system.round('placements');
  await system.round('finding of notices');
  await system.finish('notices');
  await system.finish('relay');
}

it('a restaurant settles the doubt about its order by the link in its message, and the timeline shows the answer', async () => {
  await setContacts(system, 'nord', [{ name: 'Kitchen', email: 'kitchen@nord.example', via: 'email' }]);
  const { serviceOrderId } = await system.placeOrder({ locationId: 'nord' });
  await turn();
  const [sent] = mail.mails;
  const { call_out_code: code } = (await system.order(serviceOrderId)) ?? {};
  expect(sent?.headers).toContain(`Is order ${String(code)} on your till?`);
  const path = /https:\/\/expediter\.example\.com(\S+)/.exec(sent?.body ?? '')?.[1] ?? '';
  const page = await fetch(`${system.urls[0]}${path}`);
  const notice = /name="notice" value="([^"]+)"/.exec(await page.text())?.[1] ?? '';
  const answered = await fetch(`${system.urls[0]}${path}`, {
    method: 'POST',
    body: new URLSearchParams({ notice, answer: 'there' }),
  });
  expect(await answered.text()).toContain('Kitchen answered');
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
