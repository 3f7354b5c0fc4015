import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { migrate } from '../../src/database/migrate.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { post, statusWebhook } from '../../world/system/start-system.ts';
import { askAxe } from './open-browser.ts';
import { isLive } from './on-page.ts';
import { useConsole } from './open-console.ts';

let postgres: Postgres;
// Before the console, so that it stops after it.
afterAll(() => postgres?.stop());
const pass = useConsole(async () => {
  postgres = await startPostgres();
  await migrate(postgres.url);
  return { databaseUrl: postgres.url, env: { SPILL_TOPIC: 'spill' } };
});

it('every page says during an outage of Postgres how many webhooks wait', async () => {
  const { system } = pass;
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await system.seedOrder({ serviceOrderId: 'order-spilled', locationId: 'club-1' });
  const webhook = await system.webhookUrl('club-1');
  await sleep(3_100); // The list of tokens is read every three seconds.
  const { page } = await pass.open();
  await isLive(page);
  expect(await page.getByText('Postgres is unavailable').count()).toBe(0);

  await postgres.kill();
  for (const status of ['RECEIVED', 'READY']) {
    const answer = await post(webhook, statusWebhook({ serviceOrderId: 'order-spilled', status }));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'accepted' } });
  }
  const banner = page.locator('main').getByText('Postgres is unavailable: 2 webhooks wait in the spill');
  await banner.waitFor();
  expect(await askAxe(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await askAxe(page, { colours: true })).toEqual([]);

  await postgres.restart();
  await banner.waitFor({ state: 'detached' });
  await page.getByText('The outage is over').waitFor({ state: 'attached' });
  await page
    .getByRole('region', { name: /^Ready / })
    .getByRole('link', { name: /order-spilled/ })
    .waitFor();
});
