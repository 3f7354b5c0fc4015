import { status } from '@grpc/grpc-js';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { runMain } from '../../world/processes/run-main.ts';
import type { HttpServer } from '../../world/network/serve-http.ts';
import { lookOut, whenSeen } from './in-page.ts';
import { isLive } from './on-page.ts';
import { useConsole } from './open-console.ts';

/** An update is on screen within 300 ms of the webhook; half of them, on whatever machine this is. */
const ON_SCREEN_MS = 300;
const ROUNDS = 9;

const pass = useConsole({ processes: 2 });
beforeAll(() => pass.system.addLocation('club-1', { ordersUrl: pass.pos.ordersUrl }));

const column = (page: Page, name: string): Locator => page.getByRole('region', { name: new RegExp(`^${name} `) });
const ticket = (page: Page, under: string, id: string): Locator =>
  column(page, under).getByRole('link', { name: new RegExp(`\\b${id}\\b`) });
/** A webhook's address at the nth process. */
const webhookAt = async (nth: number): Promise<string> =>
  (await pass.system.webhookUrl('club-1')).replace(pass.system.urls[0] ?? '', pass.system.urls[nth] ?? '');

describe('the board', () => {
  it('moves an order through the columns from its signal to its end', async () => {
    const { page } = await pass.open();
    await isLive(page);
    const { serviceOrderId } = await pass.system.placeOrder({ serviceOrderId: 'order-whole', type: 'delivery' });
    await ticket(page, 'Sent', serviceOrderId).waitFor();
    const webhook = await webhookAt(0);
    for (const [status, name] of [
      ['RECEIVED', 'Confirmed'],
      ['IN_PROGRESS', 'Preparing'],
      ['READY', 'Ready'],
      ['EN_ROUTE', 'Out'],
      ['COMPLETED', 'Done today'],
    ] as const) {
      await pass.pos.sendStatus(webhook, { serviceOrderId, status });
      await ticket(page, name, serviceOrderId).waitFor();
      expect(await page.getByRole('link', { name: /\border-whole\b/ }).count()).toBe(1);
    }
    await page.getByText('0 open, 1 done today').waitFor();
  });

  it.each([
    ['the same process', 0],
    ['another process', 1],
  ])('shows a status within 300 ms of its webhook to %s', async (name, nth) => {
    const { page } = await pass.open();
    await isLive(page);
    const webhook = await webhookAt(nth);
    const tookMs: number[] = [];
    for (let i = 0; i < ROUNDS; i += 1) {
      const serviceOrderId = `order-${nth}-${i}`;
      await pass.system.seedOrder({ serviceOrderId, locationId: 'club-1' });
      await ticket(page, 'Sent', serviceOrderId).waitFor();
      await page.evaluate(lookOut, { heading: 'Preparing', serviceOrderId });
      await pass.pos.sendStatus(webhook, { serviceOrderId, status: 'IN_PROGRESS' });
      const answered = Date.now();
      tookMs.push((await page.evaluate(whenSeen)) - answered);
      // Done: it leaves the first rows of its column to the next.
      await pass.pos.sendStatus(webhook, { serviceOrderId, status: 'COMPLETED' });
      await ticket(page, 'Done today', serviceOrderId).waitFor();
    }
    tookMs.sort((a, b) => a - b);
    const [median = Infinity, slowest = Infinity] = [tookMs[(ROUNDS - 1) / 2], tookMs.at(-1)];
    console.info(`on screen after a webhook through ${name}: median ${median} ms, slowest ${slowest} ms`);
    expect(median).toBeLessThan(ON_SCREEN_MS);
    expect(slowest).toBeLessThan(10 * ON_SCREEN_MS);
  });

  it('filters by location and text, and its address keeps the filter', async () => {
    const { system } = pass;
    await system.addLocation('club-2', { ordersUrl: pass.pos.ordersUrl });
    await system.seedOrder({ serviceOrderId: 'order-near', locationId: 'club-1' });
    await system.seedOrder({ serviceOrderId: 'order-far', locationId: 'club-2' });
    const { page } = await pass.open();
    await ticket(page, 'Sent', 'order-far').waitFor();
    await page.getByLabel('Location', { exact: true }).selectOption('club-2');
    await ticket(page, 'Sent', 'order-near').waitFor({ state: 'detached' });
    await ticket(page, 'Sent', 'order-far').waitFor();

    const shared = await pass.open(page.url().replace(system.urls[0] ?? '', ''));
    await ticket(shared.page, 'Sent', 'order-far').waitFor();
    expect(await ticket(shared.page, 'Sent', 'order-near').count()).toBe(0);

    await page.goBack();
    await ticket(page, 'Sent', 'order-near').waitFor();
    await page.getByLabel(/^Order, POS id/).fill('NEAR');
    await ticket(page, 'Sent', 'order-far').waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('?text=NEAR');
    await page.getByRole('button', { name: 'Show all' }).click();
    await ticket(page, 'Sent', 'order-far').waitFor();
  });
});

it('the board on a phone leaves the column that it opened once this column is empty', async () => {
  await pass.system.seedOrder({ serviceOrderId: 'order-leaves', locationId: 'club-1' });
  const { page } = await pass.open('/console/?text=order-leaves', { viewport: { width: 390, height: 844 } });
  await ticket(page, 'Sent', 'order-leaves').waitFor();
  await pass.pos.sendStatus(await webhookAt(0), { serviceOrderId: 'order-leaves', status: 'READY' });
  await ticket(page, 'Ready', 'order-leaves').waitFor();
});

it('the board says that members are not notified while live messages wait', async () => {
  const { system } = pass;
  const { page } = await pass.open();
  await isLive(page);
  system.pubsub.faults.publishError = () => status.UNAVAILABLE;
  await system.placeOrder({ serviceOrderId: 'order-unnotified' });
  const need = page.getByRole('region', { name: /^Members are not being notified/ });
  await need.getByRole('link', { name: /of 1 order wait/ }).waitFor({ timeout: 20_000 });
  await page.getByText('Members not notified').waitFor();
  expect(await page.getByText('Live', { exact: true }).count()).toBe(0);
  system.pubsub.faults.publishError = undefined;
  await isLive(page);
  await need.waitFor({ state: 'detached' });
});

it('an order whose webhooks are dropped is not shown as one whose POS is silent', async () => {
  const { system } = pass;
  const secret = (of: number): string => `whsec_${Buffer.alloc(24, of).toString('base64')}`;
  await system.addLocation('deaf', { ordersUrl: pass.pos.ordersUrl, secret: secret(1) });
  await system.seedOrder({ serviceOrderId: 'order-unheard', locationId: 'deaf' });
  const { page } = await pass.open('/console/orders/order-unheard');
  await page.getByText('the POS has reported nothing yet').waitFor();
  await pass.pos.sendStatus(await system.webhookUrl('deaf'), { serviceOrderId: 'order-unheard', status: 'READY' });
  await page.reload();
  await page.getByText('was dropped since. They may be about this order').waitFor();
  expect(await page.getByText('the POS has reported nothing yet').count()).toBe(0);
  expect(await page.getByRole('link', { name: 'One webhook of deaf' }).getAttribute('href')).toBe(
    '/console/webhooks?outcome=dropped&location=deaf',
  );
  await page.goto('/console/');
  await ticket(page, 'Sent', 'order-unheard').getByText('its webhooks are dropped').waitFor();
});

it('an order of a silent POS says on the board since when the POS has sent nothing', async () => {
  const { system } = pass;
  await system.addLocation('silent', { ordersUrl: pass.pos.ordersUrl });
  await system.seedOrder({ serviceOrderId: 'order-unconfirmed', locationId: 'silent' });
  await system.query(
    `WITH sent AS (UPDATE placements SET finished_at = now() - interval '6 min' WHERE location_id = 'silent')
     INSERT INTO location_last_seen VALUES ('silent', 'standard', now() - interval '9 min')`,
  );
  const { page } = await pass.open();
  await ticket(page, 'Sent', 'order-unconfirmed')
    .getByText(/^no report since \d+:\d\d/)
    .waitFor();
});

it('a board whose connection is dead says so within 30 s, and reconnects', async () => {
  const { page } = await pass.open('/console/none');
  await page.clock.install();
  await page.goto('/console/');
  await page.clock.runFor(100);
  await isLive(page);
  // It is never answered.
  await page.route('**/console/api/live*', () => {});
  await page.clock.runFor(30_000);
  await page.getByText(/^Not live since/).waitFor();
  await page.unroute('**/console/api/live*');
  await page.clock.runFor(30_000);
  await isLive(page);
  await page.close();
  pass.complaints();
});

describe('a page that cannot be rendered', () => {
  const says = (page: Page): Promise<void> =>
    page.getByRole('heading', { name: 'This page cannot be shown' }).waitFor();
  const go = (page: Page, name: string): Promise<void> => page.getByRole('link', { name, exact: true }).click();

  it('shows an error, and other pages work', async () => {
    const { page } = await pass.open();
    await page.route('**/console/api/locations', (route) => route.fulfill({ json: {} }));
    await go(page, 'Locations');
    await says(page);
    await go(page, 'Board');
    await isLive(page);
    expect(pass.complaints()).toContainEqual(expect.stringMatching(/^console: TypeError/));
  });

  it('whose files were missing after a deployment works after a click on Reload', async () => {
    const { page } = await pass.open();
    await isLive(page);
    let asked = 0;
    await page.route('**/assets/traffic-*.js', (route) => {
      asked += 1;
      return route.fulfill({ status: 404 });
    });
    await go(page, 'Traffic');
    await says(page);
    const before = asked;
    await page.waitForTimeout(300);
    expect(asked, 'it is not asked for again').toBe(before);
    await page.unroute('**/assets/traffic-*.js');
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByRole('heading', { level: 1, name: 'Traffic' }).waitFor();
    await page.close();
    expect(new Set(pass.complaints().map((complaint) => complaint.replace(/-.*/, '')))).toEqual(
      new Set(['404: /console/assets/traffic']),
    );
  });

  it('that was opened without a connection appears when there is one', async () => {
    const { page } = await pass.open('/console/vendors');
    await go(page, 'Board');
    await isLive(page);
    await page.context().setOffline(true);
    await go(page, 'Vendors');
    await page.getByText('The service cannot be reached.').waitFor();
    await page.context().setOffline(false);
    await page.getByText('The service cannot be reached.').waitFor({ state: 'detached' });
    await page.close();
    expect(pass.complaints().filter((complaint) => !complaint.includes('INTERNET_DISCONNECTED'))).toEqual([]);
  });

  it('whose address is badly encoded says "Page not found"', async () => {
    const { page } = await pass.open();
    await isLive(page);
    await page.evaluate("history.pushState(null, '', '/console/orders/%E0'); dispatchEvent(new Event('popstate'))");
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    await go(page, 'Board');
    await isLive(page);
    expect(pass.complaints()).toContainEqual(expect.stringMatching(/^console: URIError/));
  });
});

describe('the board behind a load balancer', () => {
  let balancer: HttpServer;
  let targets: string[];
  beforeAll(async () => {
    targets = [...pass.system.urls];
    balancer = await balanceLoad(() => targets);
  });
  afterAll(() => balancer?.stop());

  it('continues while the processes are replaced one by one, and says when there is none', async () => {
    const { system } = pass;
    const { page } = await pass.open('/console/', { url: balancer.url });
    await isLive(page);
    const serviceOrderId = 'order-survivor';
    await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
    await ticket(page, 'Sent', serviceOrderId).waitFor();
    const webhook = new URL(await system.webhookUrl('club-1'));
    const report = (origin: string, status: string): Promise<unknown> =>
      pass.pos.sendStatus(`${origin}${webhook.pathname}${webhook.search}`, { serviceOrderId, status });

    await system.drain(0);
    await report(balancer.url, 'RECEIVED');
    await ticket(page, 'Confirmed', serviceOrderId).waitFor();
    await isLive(page);

    await system.drain(1);
    await page.getByText(/^Not live since/).waitFor();
    expect(await ticket(page, 'Confirmed', serviceOrderId).count(), 'what was known stays').toBe(1);

    const main = await runMain(system.env);
    try {
      await report(main.url, 'READY');
      targets = [main.url];
      await ticket(page, 'Ready', serviceOrderId).waitFor();
      await isLive(page);
    } finally {
      main.child.kill();
      await main.exited;
    }
    // The balancer has nobody to ask for a while.
    const refused =
      /^50[23]: \/console\/(api\/(live|spill)|session)$|^console: .*EventSource|^failed: .*\/console\/api\/(live|spill|locations|providers) /;
    expect(pass.complaints().filter((complaint) => !refused.test(complaint))).toEqual([]);
  });
});
