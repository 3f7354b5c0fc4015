import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startHubrise, type HubriseSimulator } from '../../world/pos/hubrise/start-hubrise.ts';
import { runJson } from '../support/run-json.ts';
import { post, statusWebhook } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { askAxe } from './open-browser.ts';
import { nameToken } from '../../world/system/log-in.ts';
import { confirm, says } from './on-page.ts';
import { focused } from './in-page.ts';
import { useConsole } from './open-console.ts';

const pass = useConsole({ env: { PUBLIC_URL: 'http://127.0.0.1:9' } });
let hubrise: HubriseSimulator;

beforeAll(async () => {
  hubrise = await startHubrise();
  await pass.system.addLocation('club-1', { ordersUrl: pass.pos.ordersUrl });
  await pass.system.addLocation('hub-1', hubrise.settings, 'hubrise');
  await pass.system.addLocation('hub-2', { ...hubrise.settings, accessToken: 'another' }, 'hubrise');
});
afterAll(() => hubrise?.stop());

describe('a location', () => {
  it('is found in the list by a part of its id', async () => {
    const { page } = await pass.open('/console/locations');
    await page.getByLabel('Location', { exact: true }).fill('club');
    await page.getByText('1 of 3 locations').waitFor();
    await page.getByRole('link', { name: 'club-1' }).click();
    await page.getByRole('heading', { level: 1, name: 'club-1' }).waitFor();
  });

  it('is offered by a filter once a part of its name is typed, also if there are thousands', async () => {
    const { page, context } = await pass.open('/console/none');
    await context.route('**/console/api/locations', async (route) => {
      const answer = await route.fetch();
      const { locations } = (await answer.json()) as { locations: object[] };
      const many = Array.from({ length: 5_000 }, (_, nth) => ({
        ...locations[0],
        locationId: `many-${nth}`,
        name: `Grill ${nth}`,
      }));
      await route.fulfill({ json: { locations: many } });
    });
    await page.goto('/console/traffic');
    const offers = page.locator('#traffic-location-offers option');
    await offers.first().waitFor({ state: 'attached' });
    expect(await offers.count()).toBe(100);
    await page.getByLabel('Location', { exact: true }).fill('grill 4999');
    await offers.and(page.locator('[value="Grill 4999"]')).waitFor({ state: 'attached' });
    expect(await offers.count()).toBe(1);
  });

  it('never shows its id in place of its name while names are read', async () => {
    await pass.system.query("UPDATE locations SET name = 'Hub Two' WHERE location_id = 'hub-2'");
    const { page, context } = await pass.open('/console/none');
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await context.route('**/console/api/locations', async (route) => {
      await held;
      await route.continue();
    });
    await page.goto('/console/locations/hub-2');
    await page.getByRole('button', { name: 'Pause …' }).waitFor();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('…');
    letGo();
    await page.getByRole('heading', { level: 1, name: 'Hub Two' }).waitFor();
    await pass.system.query("UPDATE locations SET name = NULL WHERE location_id = 'hub-2'");
  });

  it('shows after a test whether its settings reach the POS, and what to do if not', async () => {
    const right = await pass.open('/console/locations/hub-1');
    await right.page.getByRole('button', { name: 'Test connection' }).click();
    await right.page.getByText(/The settings reach the POS/).waitFor();

    const wrong = await pass.open('/console/locations/hub-2');
    await wrong.page.getByRole('button', { name: 'Test connection' }).click();
    await wrong.page.getByText(/HubRise refuses “Access token”/).waitFor();
    await wrong.page.getByText('What to do:').waitFor();
    expect(hubrise.requests).toBe(0);
  });
});

describe('a location that an operator changes', () => {
  it('is paused with another one for half an hour, with a reason, and then resumed', async () => {
    const { page } = await pass.open('/console/locations');
    for (const id of ['hub-1', 'hub-2']) await page.getByRole('checkbox', { name: `Choose ${id}` }).check();
    await page.getByRole('button', { name: 'Pause 2 …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Pause 2 locations?' });
    expect(await askAxe(page)).toEqual([]);
    await dialog.getByLabel('Why, for colleagues').fill('The kitchen is full');
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('row', { name: /hub-2.*paused by Shared operator token/ }).waitFor();
    await page.getByRole('link', { name: 'hub-1', exact: true }).click();
    await says(page, /^paused by Shared operator token since .*, until .*: The kitchen is full\. New orders wait\.$/);

    // A pause is changed without a resume, and an entered time is that minute exactly.
    await pass.system.query(`UPDATE locations SET time_zone = 'Asia/Kathmandu' WHERE location_id = 'hub-1'`);
    await page.reload();
    await page.getByRole('button', { name: 'Change the pause …' }).click();
    const change = page.getByRole('dialog', { name: 'Change the pause of hub-1?' });
    expect(await change.getByLabel('Why, for colleagues').inputValue()).toBe('The kitchen is full');
    await change.getByLabel('How long').selectOption('until another time (Asia/Kathmandu)');
    await change.getByLabel('Until (Asia/Kathmandu)').fill('2020-01-31T08:00');
    await change.getByRole('button', { name: 'Change the pause' }).click();
    await change.getByText('This time is in the past.').waitFor();
    await change.getByLabel('Until (Asia/Kathmandu)').fill('2099-01-31T08:00');
    expect(await askAxe(page)).toEqual([]);
    await change.getByRole('button', { name: 'Change the pause' }).click();
    await change.waitFor({ state: 'detached' });
    const [row] = await pass.system.query(`SELECT paused_until FROM locations WHERE location_id = 'hub-1'`);
    expect(row?.['paused_until']).toEqual(new Date('2099-01-31T02:15:00Z'));
    await page.getByRole('button', { name: 'Resume …' }).click();
    const kitchen = page.getByRole('definition').filter({ hasText: /^(open|reported as closed)/ });
    await kitchen.filter({ hasText: /^reported as closed during the pause$/ }).waitFor();
    await confirm(page, 'Resume hub-1?', 'Resume');
    await page
      .getByRole('definition')
      .filter({ hasText: /^taking orders/ })
      .waitFor();
    expect(await kitchen.textContent(), 'with the same answer').toBe('open');
  });

  it('is paused with exactly the ones that the dialog named when it opened', async () => {
    await pass.system.query('UPDATE locations SET paused_at = NULL, paused_until = NULL, paused_reason = NULL');
    const { page } = await pass.open('/console/locations');
    for (const id of ['hub-1', 'hub-2']) await page.getByRole('checkbox', { name: `Choose ${id}` }).check();
    await page.getByRole('button', { name: 'Pause 2 …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Pause 2 locations?' });
    await pass.system.query("UPDATE locations SET paused_at = now() WHERE location_id = 'hub-1'");
    await page.getByRole('row', { name: /hub-1.*paused by/, includeHidden: true }).waitFor({ timeout: 60_000 });
    expect(await dialog.count()).toBe(1);
    await pass.system.query('UPDATE locations SET paused_at = NULL');
  });

  it('shows its address, telephone and back office once they are entered', async () => {
    const { page } = await pass.open('/console/locations/hub-1');
    await page.getByRole('button', { name: 'Edit …' }).click();
    await page.getByLabel('Address', { exact: true }).fill('Hafenstr. 1, Hamburg');
    await page.getByLabel('Back office of the POS').fill('https://pos.example.com/nord');
    await page.getByRole('button', { name: 'Add a contact' }).click();
    await page.getByRole('group', { name: 'Contact 1' }).getByLabel('Phone').fill('+4930123456');
    await page.getByRole('button', { name: 'Preview and save …' }).click();
    await confirm(page, 'Save these changes?', 'Save');
    const reach = page.getByRole('region', { name: 'The restaurant' });
    await reach.getByText('Hafenstr. 1, Hamburg').waitFor();
    expect(await reach.getByRole('link', { name: '+4930123456' }).getAttribute('href')).toBe('tel:+4930123456');
    const office = reach.getByRole('link', { name: 'Open hubrise, in a new tab' });
    expect(await office.getAttribute('href')).toBe('https://pos.example.com/nord');
    expect(await office.getAttribute('rel')).toBe('noreferrer');
  });

  it('has a case that people take, hand over and close, with notes', async () => {
    await nameToken(pass.system, 'Ann', ['operator'], ['club-1']);
    const { page } = await pass.open('/console/locations/club-1');
    const about = page.getByRole('region', { name: 'Case and notes' });
    await about.getByRole('button', { name: 'I have this one' }).click();
    await about.getByText('You have this one').waitFor();
    await about.getByLabel(/^Add a note/).fill('They call back at six');
    await about.getByRole('button', { name: 'Add the note' }).click();
    await about.getByRole('list', { name: 'Notes' }).getByText('They call back at six').waitFor();
    expect(await askAxe(page)).toEqual([]);
    await about.getByRole('button', { name: 'Hand over …' }).click();
    const to = page.getByLabel('To whom');
    await page.getByRole('dialog').getByRole('button', { name: 'Hand over' }).click();
    await page.getByText('Choose one.').waitFor();
    expect(await to.getAttribute('aria-invalid')).toBe('true');
    expect(await to.locator('option').allTextContents()).toEqual(['Choose …', 'Ann']);
    expect(await askAxe(page)).toEqual([]);
    await to.selectOption('Ann');
    await confirm(page, 'Hand over this case', 'Hand over');
    await about.getByText(/^Ann has this one, given by Shared operator token, /).waitFor();
    await about.getByRole('button', { name: 'Close the case …' }).click();
    await page.getByLabel(/^What was done/).fill('The till works again');
    await confirm(page, 'Close this case?', 'Close the case');
    await about.getByText(/^Shared operator token closed the case at .+\.$/).waitFor();
    expect(await about.getByRole('button', { name: 'Close the case …' }).count()).toBe(0);
    await about.getByRole('list', { name: 'Notes' }).getByText('The till works again').waitFor();
    expect(await about.getByRole('button', { name: /^I called/ }).count(), 'the location is not on the board').toBe(0);
    const { serviceOrderId } = await pass.system.placeOrder();
    const age = `UPDATE placements SET finished_at = now() - interval '6 min'
                 WHERE service_order_id = $1 AND state = 'sent' RETURNING state`;
    await until(async () => (await pass.system.query(age, [serviceOrderId])).length === 1);
    const alarm = page.getByText(/^1 ticket without a report since .*Make one under Connection\.$/);
    await alarm.waitFor();
    await page.getByText('No telephone number is stored for club-1.').waitFor();
    await about.getByRole('button', { name: /^I called/ }).click();
    await about.getByRole('list', { name: 'Notes' }).getByText('I called the restaurant.').waitFor();
    await about.getByText(/^Hidden until/).waitFor();
    await alarm.waitFor({ state: 'detached' });
    await page.getByText(/^1 ticket without a report since [^.]*\.$/).waitFor();
    await about.getByRole('button', { name: 'Show the alarm' }).click();
    await about.getByRole('button', { name: 'Snooze …' }).click();
    await confirm(page, 'Snooze this?', 'Snooze');
    await about.getByText(/^Hidden until/).waitFor();
    await about.getByRole('button', { name: 'Show the alarm' }).click();
    await about.getByRole('button', { name: 'Snooze …' }).waitFor();
    // Who may enter the number is led to its field.
    await page.getByRole('link', { name: 'Enter it' }).click();
    await until(async () => (await page.evaluate(focused)).name === 'Phone');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await until(async () => (await page.evaluate(focused)).name === 'Edit …');
  });
});

describe('a webhook token', () => {
  it('is made and revoked on the page of its location', async () => {
    const { page } = await pass.open('/console/locations/club-1');
    await page.getByRole('button', { name: 'Make a token …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Make a token' });
    await dialog.getByLabel('What it is for').fill("the till's, 2027");
    await dialog.getByLabel('Expires').selectOption('after 90 days');
    await dialog.getByRole('button', { name: 'Make the token' }).click();
    const { pathname, search, searchParams } = new URL((await dialog.locator('pre').textContent()) ?? '');
    const token = searchParams.get('token') ?? '';
    const webhook = `${pass.system.urls[0]}${pathname}${search}`;
    const report = statusWebhook({ serviceOrderId: 'order-none', providerOrderId: 'pos-none', status: 'READY' });
    expect((await post(webhook, report)).status).toBe(200);

    await page.reload();
    const tokens = page.getByRole('list', { name: 'Tokens' });
    const issued = tokens.getByRole('listitem').filter({ hasText: "the till's, 2027" });
    await issued.getByText('valid').waitFor();
    await says(issued, /^Used|just now/);
    await issued.getByRole('button', { name: /^Revoke/ }).click();
    await confirm(page, "Revoke the till's, 2027?", 'Revoke the token');
    await issued.getByText('revoked', { exact: true }).waitFor();
    await until(async () => (await post(webhook, report)).status === 401);
    expect(await page.content()).not.toContain(token);
    const listed = await runJson<{ tokens: { state: string }[] }>(pass.system.env, [
      'token',
      'list',
      '--location',
      'club-1',
    ]);
    expect(JSON.stringify(listed)).toContain('revoked');
  });
});
