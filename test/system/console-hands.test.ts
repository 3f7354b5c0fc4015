import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { until } from '../../world/processes/until.ts';
import { nameToken } from '../../world/system/log-in.ts';
import { askAxe } from './open-browser.ts';
import { confirm, isLive, press, says } from './on-page.ts';
import { useConsole } from './open-console.ts';

const pass = useConsole();
beforeAll(() => pass.system.addLocation('club-1', { ordersUrl: pass.pos.ordersUrl }));
afterEach(() => void (pass.pos.behave = undefined));

/** An order that is held, and its code. */
async function held(): Promise<{ id: string; code: string }> {
  pass.pos.behave = () => ({ status: 404 });
  const { serviceOrderId: id } = await pass.system.placeOrder();
  await until(async () => (await pass.system.placement(id))?.['state'] === 'held');
  const code = String((await pass.system.order(id))?.['call_out_code']);
  return { id, code };
}

/** The board of an operator of that name. */
async function openAs(name: string): Promise<Page> {
  const { page } = await pass.open('/console/', { token: await nameToken(pass.system, name, ['viewer', 'operator']) });
  await isLive(page);
  return page;
}

it('the search finds an order by its call-out code, with keys only', async () => {
  const { id, code } = await held();
  const { page } = await pass.open('/console/traffic');
  await page.getByRole('heading', { level: 1, name: 'Traffic' }).waitFor();
  await page.keyboard.press('/');
  await page
    .getByRole('searchbox', { name: /^Code, order id/ })
    .and(page.locator(':focus'))
    .waitFor();
  await page.keyboard.type(code.toLowerCase());
  await page.getByRole('dialog', { name: 'Search' }).getByRole('link', { name: code }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: `Order ${code}` }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/console/orders/${id}`);
  await page.getByRole('dialog').waitFor({ state: 'detached' });
});

it('the search offers the orders of a member by family name or number, and no URL, log or audit has them', async () => {
  const { code } = await held();
  const { page } = await pass.open();
  const urls: string[] = [];
  page.on('request', (request) => urls.push(decodeURIComponent(request.url())));
  await isLive(page);
  await page.keyboard.press('Control+k');
  const dialog = page.getByRole('dialog', { name: 'Search' });
  const count = async (): Promise<number> =>
    (await pass.system.query(`SELECT FROM audit WHERE action = 'search member' AND location_id IS NULL`)).length;
  for (const [nth, text] of ['Lovelace', '030 12345678'].entries()) {
    await dialog.getByRole('searchbox').fill(text);
    await dialog.getByRole('button', { name: `Search the orders of a member: ${text}, logged` }).waitFor();
    expect(await dialog.getByText('Nothing found.').count(), 'above the button that finds it').toBe(0);
    expect(await askAxe(page)).toEqual([]);
    expect(await count(), 'before a person starts it').toBe(nth);
    await page.keyboard.press('Enter');
    await dialog.getByRole('link', { name: code }).first().waitFor();
    await dialog
      .getByText(/, €48\.34, /)
      .first()
      .waitFor();
    expect(await count()).toBe(nth + 1);
  }
  expect(urls.filter((url) => /lovelace|12345678/i.test(url))).toEqual([]);
  expect(pass.system.logged.join('')).not.toMatch(/lovelace|12345678/i);
  const [row] = await pass.system.query(`SELECT to_jsonb(a)::text AS text FROM audit a WHERE action = 'search member'`);
  expect(row?.['text']).toBeDefined();
  expect(String(row?.['text'])).not.toContain('Ada');
  expect(pass.system.logged.join('')).not.toContain('Ada');
});

it('the key j moves to the first order that needs a person, and single keys can be turned off', async () => {
  const { code } = await held();
  const { page } = await pass.open();
  await isLive(page);
  await page.getByRole('region', { name: /^On hold/ }).waitFor();
  await page.keyboard.press('j');
  await until(async () => ((await page.locator(':focus').getAttribute('class')) ?? '').includes('need'));
  await page.keyboard.press('?');
  await page.getByLabel(/^Single keys act/).uncheck();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.keyboard.press('/');
  expect(await page.getByRole('dialog').count(), code).toBe(0);
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Search' }).waitFor();
});

it('the boards of other people show who has taken a case, and who gave it to them', async () => {
  const { id } = await held();
  const [grace, ann] = [await openAs('Grace'), await openAs('Ann')];
  // On the board, one line stands for all held orders of a location that nobody has.
  await grace.goto(`/console/orders/${id}`);
  await press(grace, 'I have this one');
  await says(grace.getByRole('region', { name: 'Case and notes' }), 'You have this one');
  await says(ann, 'Grace has it');
  await press(grace, 'Hand over …');
  await grace.getByLabel('To whom').selectOption('Ann');
  await confirm(grace, 'Hand over this case', 'Hand over');
  await says(grace.getByRole('region', { name: 'Case and notes' }), 'Ann has this one');
  await says(ann, /^You have it, given to you by Grace, (just now|\d+ s ago)/);
  await ann.goto(`/console/orders/${id}`);
  await says(ann.getByRole('region', { name: 'Case and notes' }), 'You have this one, given to you by Grace');
});

it('a dialog says who did meanwhile what it asks, on the board and on the page of the order', async () => {
  const { id, code } = await held();
  const [ida, ben] = [await openAs('Ida'), await openAs('Ben')];
  for (const page of [ida, ben]) {
    await page.goto(`/console/orders/${id}`);
    await press(page, /^(I have this one|Take over from Ida)$/);
    await says(page.getByRole('region', { name: 'Case and notes' }), 'You have this one');
    await press(page, 'Retry now');
  }
  const answer = (page: Page, name: string) =>
    page.getByRole('dialog').last().getByRole('button', { name, exact: true });
  await answer(ida, 'Retry now').click();
  await ida.getByRole('dialog').waitFor({ state: 'detached' });
  await answer(ben, 'Retry now').click();
  await says(ben.getByRole('dialog'), /^Ida .*retried the order at .+ Nothing was done now\.$/);
  expect(await answer(ben, 'Retry now').count()).toBe(0);

  await ben.goto('/console/');
  await press(ben, `Case of ${code}, club-1`);
  for (const page of [ida, ben]) await press(page, 'Close the case …');
  await answer(ida, 'Close the case').click();
  await says(ida.getByRole('region', { name: 'Case and notes' }), /^Ida .*closed the case at/);
  await says(ben.getByRole('dialog').last(), /^Ida .*closed the case at .+ Nothing was done now\.$/);
  await answer(ben, 'Close').click();
  await says(ben.getByRole('dialog'), /^Ida .*closed the case at [^N]+$/);
  for (const page of [ida, ben]) expect(await page.getByRole('button', { name: 'Close the case …' }).count()).toBe(0);
});

it('a change of a ticket waits on the board until somebody says what the restaurant did with it', async () => {
  const order = await pass.system.placeOrder();
  const { serviceOrderId: id } = order;
  await until(async () => (await pass.system.placement(id))?.['state'] === 'sent');
  const code = String((await pass.system.order(id))?.['call_out_code']);
  const fries = { serviceItemId: 'fries', name: 'Fries', quantity: 1, unitPrice: 350, modifiers: [] };
  pass.system.platform.orders.set(id, { ...order, items: [...order.items, { ...fries, ageRestricted: false }] });
  await pass.system.signal(id);
  const { page } = await pass.open();
  await isLive(page);
  await page.getByRole('region', { name: /^Changed/ }).waitFor();
  await page.getByRole('link', { name: code }).first().click();
  await says(page, '1 × Fries added');
  await press(page, 'Done');
  await confirm(page, 'The restaurant applied the change?', 'Done');
  await says(page, 'The change is applied.');
  await says(page, "The platform's change after it was sent: applied");
  await until(() => pass.system.live(id).at(-1)?.change === 'applied');
});

it('the list of orders cancels the chosen orders', async () => {
  const { id, code } = await held();
  const { page } = await pass.open('/console/orders?needs=operator');
  await page.getByLabel(`Choose ${code}`).check();
  await page.getByRole('button', { name: 'Cancel 1 order …' }).click();
  await page.getByRole('button', { name: 'Cancel 1 order', exact: true }).click();
  await page.getByText('Done: 1.').waitFor();
  await until(async () => (await pass.system.placement(id))?.['state'] === 'withdrawn');
});

it('a wall display shows the board without menus, and keeps alerts on after a reload', async () => {
  const { page } = await pass.open();
  await isLive(page);
  await page.getByRole('button', { name: 'Sound for new problems' }).click();
  await page.getByRole('button', { name: 'Wall display' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'detached' });
  await page.reload();
  await isLive(page);
  await page.getByRole('button', { name: 'Sound is on', pressed: true }).waitFor();
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
});

it('roles for an address make a named token instead, while nobody can sign in by address', async () => {
  const { page } = await pass.open('/console/people');
  await press(page, 'Give roles …');
  const dialog = page.getByRole('dialog', { name: 'Give roles' });
  await dialog.getByLabel(/operator:/).check();
  await dialog.getByLabel('Where').selectOption('some');
  await dialog.getByRole('group', { name: 'Locations' }).getByLabel('club-1').check();
  await says(dialog, /^Nobody can sign in by address or group here/);
  // The service judges the address, and its field says what is wrong.
  await dialog.getByLabel('E-mail address').fill('ada');
  await press(dialog, 'Give the roles');
  await dialog.getByText('E-mail is not an e-mail address.').waitFor();
  expect(await dialog.getByLabel('E-mail address').getAttribute('aria-invalid')).toBe('true');
  expect(pass.complaints()).toEqual([expect.stringMatching(/^400: .*grants$/)]);
  expect(await askAxe(page)).toEqual([]);
  await press(page, 'Make a named token instead');
  const token = page.getByRole('dialog', { name: 'Make a named token' });
  await token.getByLabel(/^Name/).fill('Norah');
  await token.getByRole('button', { name: 'Make the token' }).click();
  await token.locator('pre').waitFor();
  await press(page, 'Close');
  await page.getByRole('list', { name: 'Named tokens' }).getByText('operator at club-1').waitFor();
});
