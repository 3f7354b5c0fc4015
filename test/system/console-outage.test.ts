import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '../../src/migrate.ts';
import { startPostgres, type Postgres } from '../support/start-postgres.ts';
import { openConsole, type Console } from './open-console.ts';
import { askAxe } from './open-browser.ts';

let postgres: Postgres;
let pass: Console;

beforeAll(async () => {
  postgres = await startPostgres();
  await migrate(postgres.url);
  pass = await openConsole({ databaseUrl: postgres.url });
});
afterAll(async () => {
  await pass?.stop();
  await postgres?.stop();
});

it('every page says that Postgres is away, until it is back', async () => {
  const { page } = await pass.open();
  await page.getByText('Live', { exact: true }).waitFor();
  const banner = page.getByText('Postgres is away').first();
  expect(await banner.count()).toBe(0);
  await postgres.kill();
  await banner.waitFor();
  expect(await askAxe(page)).toEqual([]);
  await postgres.restart();
  await banner.waitFor({ state: 'detached' });
  await page.getByText('The outage is over').waitFor({ state: 'attached' });
  expect(pass.complaints()).toEqual([]);
});
