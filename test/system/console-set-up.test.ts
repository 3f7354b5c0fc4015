import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { runJson } from '../support/run-json.ts';
import { post, statusWebhook } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { askAxe } from './open-browser.ts';
import { focused } from './in-page.ts';
import { press, says, seesLink } from './on-page.ts';
import { useConsole } from './open-console.ts';

// Refused requests are what some of this is about, and nobody is signed in at first.
const refused = /^((400|409|412): \/console\/api\/locations\/|401: \/console\/session)/;
const pass = useConsole({ env: { PUBLIC_URL: 'http://127.0.0.1:9' } }, { refused });

beforeAll(async () => {
  await pass.system.addLocation('club-1', { ordersUrl: pass.pos.ordersUrl });
  await pass.system.query(`UPDATE locations SET groups = '{brand-nord}'`);
});

const problemOf = async (page: Page, label: string): Promise<string | null> => {
  const id = await page.getByLabel(label, { exact: true }).getAttribute('aria-describedby');
  return page.locator(`#${id?.split(' ').at(-1)}`).textContent();
};

it('a restaurant that is added by the wizard takes a test order', async () => {
  const { page } = await pass.open('/console/locations');
  await page.getByRole('link', { name: 'Add a location' }).click();
  await says(page, 'Which restaurant, and which POS?');
  await press(page, /^Next/);
  await says(page, 'Choose a POS.');
  expect(await askAxe(page)).toEqual([]);

  await page.getByLabel(/^Standard API/).check();
  // A wrong value is named at its field as soon as the field is left.
  await page.getByLabel('Time zone').fill('Nowhere');
  await page.keyboard.press('Tab');
  await says(page, 'Time zone is not an IANA time zone such as Europe/Berlin.');
  expect(await page.getByLabel('Time zone').getAttribute('aria-invalid')).toBe('true');
  expect(await problemOf(page, 'Time zone')).toMatch(/such as Europe\/Berlin/);
  const zones = page.locator('#about-zone-offers option');
  expect(await zones.filter({ hasText: 'New York, UTC' }).getAttribute('value')).toBe('America/New_York');
  expect(await askAxe(page)).toEqual([]);
  await page.getByLabel('Id', { exact: true }).fill('club-9');
  await press(page, 'Add the group brand-nord');
  await press(page, /^Next/);
  expect(await problemOf(page, 'Name')).toBe('Fill this in.');
  await page.getByLabel('Name', { exact: true }).fill('Trattoria Nord');
  await press(page, /^Next/);
  // The step is not left.
  await until(async () => (await page.evaluate(focused)).name === 'Time zone');
  await page.getByLabel('Time zone').fill('Europe/Berlin');
  await press(page, /^Next/);

  await page.getByLabel('Unsigned').selectOption('yes');
  await page.getByLabel('Orders URL').fill('nonsense');
  await page.keyboard.press('Tab');
  await says(page, 'Orders URL is not a URL such as https://pos.example.com.');
  await press(page, /^Next/);
  await until(async () => (await page.evaluate(focused)).name === 'Orders URL');
  expect(await problemOf(page, 'Orders URL')).toBe('Orders URL is not a URL such as https://pos.example.com.');
  expect(await page.getByLabel('Orders URL').inputValue()).toBe('nonsense');
  expect(await askAxe(page)).toEqual([]);
  await page.getByLabel('Orders URL').fill(pass.pos.ordersUrl);
  await press(page, /^Next/);
  await page.getByRole('row', { name: 'POS Standard API' }).waitFor();
  await page.getByRole('row', { name: `Orders URL ${new URL(pass.pos.ordersUrl).origin}/…` }).waitFor();
  // This POS has no such test.
  expect(await page.getByText('tested in the next step').count()).toBe(0);
  expect(await askAxe(page)).toEqual([]);
  expect(await pass.system.query("SELECT FROM locations WHERE location_id = 'club-9'")).toEqual([]);
  await press(page, 'Save');

  await page.getByRole('heading', { level: 1, name: 'Trattoria Nord' }).waitFor();
  await says(page, 'Trattoria Nord is stored.');
  // The settings are tested, and the token is made, without a click.
  await says(page, /^settings read/);
  const connection = page.getByRole('region', { name: 'Connection' });
  const url = (await connection.locator('pre').textContent()) ?? '';
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:9\/webhook\/standard\/club-9\?token=exw_/);
  expect(await askAxe(page)).toEqual([]);
  const dialog = page.getByRole('dialog');
  const webhook = url.replace('http://127.0.0.1:9', pass.system.urls[0] ?? '');
  const report = statusWebhook({ serviceOrderId: 'order-none', providerOrderId: 'pos-none', status: 'READY' });
  expect((await post(webhook, report)).status).toBe(200);
  await says(page, /^1 valid token/);

  await press(page, 'Place a test order …');
  expect(await askAxe(page)).toEqual([]);
  pass.pos.behave = () => ({ status: 422 });
  await dialog.getByLabel('Item, by its id on the platform').fill('no-such-item');
  await press(dialog, 'Place the test order');
  await says(dialog, 'What to do:');
  await says(page, 'placed a test order');
  pass.pos.behave = undefined;
  expect(await dialog.getByLabel('Item, by its id on the platform').inputValue()).toBe('no-such-item');
  await press(dialog, 'Place the test order');
  await says(dialog, /took the order/);
  const [ticket] = pass.pos.tickets;
  expect(ticket?.order.items?.map(({ name }) => name)).toEqual(['TEST, do not cook']);
  await says(dialog, ticket?.providerOrderId ?? 'no ticket');
  await press(dialog, 'Close');
  await says(page.getByRole('list', { name: 'The last test order' }), 'the POS took it');
  await page.getByRole('link', { name: 'Done' }).click();
  await says(page, 'Configuration');
  expect(await page.content()).not.toContain(new URL(url).searchParams.get('token'));
});

it('a restaurant needs eight clicks from the list of locations to its first ticket, and one to copy its address', async () => {
  const { page } = await pass.open('/console/locations');
  await page.evaluate('document.clicks = 0; addEventListener("pointerdown", () => (document.clicks += 1), true)');
  const made = pass.pos.tickets.length;
  await page.getByRole('link', { name: 'Add a location' }).click();
  await page.getByLabel(/^Standard API/).check();
  // Typed, with the keyboard from field to field.
  await page.getByLabel('Id', { exact: true }).fill('club-8');
  await page.getByLabel('Name', { exact: true }).fill('Bistro 8');
  await press(page, /^Next/);
  await page.getByLabel('Orders URL').fill(pass.pos.ordersUrl);
  await press(page, 'Generate Secret');
  await press(page, /^Next/);
  await press(page, 'Save');
  await says(page, /^settings read/);
  await page.getByRole('button', { name: 'Copy: the webhook address with the token' }).waitFor();
  await press(page, 'Place a test order …');
  await press(page.getByRole('dialog'), 'Place the test order');
  await says(page.getByRole('dialog'), /took the order/);
  expect(pass.pos.tickets).toHaveLength(made + 1);
  expect(await page.evaluate('document.clicks')).toBe(8);
});

it('a test order at a POS that takes only items of its menu offers those of the settings', async () => {
  const { page } = await pass.open('/console/locations');
  await page.route('**/console/api/locations/club-1', async (route) => {
    const answer = await route.fetch();
    const { knows, settings, ...location } = (await answer.json()) as { knows: object; settings: object };
    const itemMap = { value: { margherita: 'pos-1' } };
    await route.fulfill({
      json: { ...location, knows: { ...knows, menuOnly: true }, settings: { ...settings, itemMap } },
    });
  });
  await page.getByRole('link', { name: 'club-1', exact: true }).click();
  await press(page, 'Place a test order …');
  const dialog = page.getByRole('dialog');
  await press(dialog, 'Place the test order');
  await says(dialog, 'Fill this in.');
  expect(await dialog.locator('datalist option').getAttribute('value')).toBe('margherita');
  expect(await dialog.getByLabel('Item, by its id on the platform').getAttribute('placeholder')).toBeNull();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

it('a country and a time zone may be typed by the name of the country and of a city', async () => {
  const { page } = await pass.open('/console/locations/new');
  await page.getByLabel('Country').pressSequentially('germany');
  await page.keyboard.press('Tab');
  await until(async () => (await page.getByLabel('Country').inputValue()) === 'DE');
  await page.getByLabel('Time zone').pressSequentially('new york');
  await page.keyboard.press('Tab');
  await until(async () => (await page.getByLabel('Time zone').inputValue()) === 'America/New_York');
});

it('the form points out that a contact hears nothing by e-mail where no mail server is set', async () => {
  const { page } = await pass.open('/console/locations/new');
  await press(page, 'Add a contact');
  const words = /^Nothing is sent this way: this service has no mail server\./;
  expect(await page.getByText(words).count()).toBe(0);
  await page.getByLabel('Told about orders').selectOption('by e-mail');
  await says(page, words);
  expect(await askAxe(page)).toEqual([]);
});

it('the wizard refuses the id of an existing location', async () => {
  const { page } = await pass.open('/console/locations/new');
  await page.getByLabel(/^Standard API/).check();
  await page.getByLabel('Id', { exact: true }).fill('club-1');
  await page.getByLabel('Name', { exact: true }).fill('Bistro 1');
  await press(page, /^Next/);
  await says(page, 'A location with this id exists already.');
  await page.getByLabel('Id', { exact: true }).fill('club-10');
  await press(page, /^Next/);
  await page.getByLabel('Orders URL').fill('https://pos.example.com/orders');
  await page.getByLabel('Unsigned').selectOption('yes');
  await pass.system.addLocation('club-10', { ordersUrl: pass.pos.ordersUrl });
  await press(page, /^Next/);
  await says(page, 'A location with the id club-10 exists already, so nothing is saved.');
  expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0);
});

it('a field of an earlier step that is refused leads back to that step', async () => {
  const { page } = await pass.open('/console/locations/new');
  await page.getByLabel(/^Standard API/).check();
  await page.getByLabel('Id', { exact: true }).fill('club-12');
  await page.getByLabel('Name', { exact: true }).fill('Bistro 12');
  await press(page, /^Next/);
  await page.getByLabel('Orders URL').fill(pass.pos.ordersUrl);
  await page.getByLabel('Unsigned').selectOption('yes');
  // As if the rules had changed since the first step.
  const issues = [{ path: 'address', received: 'string', says: 'is not known' }];
  await page.route('**/locations/club-12?dryRun=true', (route) =>
    route.fulfill({ status: 400, contentType: 'application/problem+json', json: { detail: 'No.', issues } }),
  );
  await press(page, /^Next/);
  await says(page, 'Address is not known.');
  await until(async () => (await page.evaluate(focused)).name === 'Address');
});

it('a secret that we choose ourselves is generated, shown and stored', async () => {
  const { page } = await pass.open('/console/locations/new');
  await page.getByLabel(/^Standard API/).check();
  await page.getByLabel('Id', { exact: true }).fill('club-13');
  await page.getByLabel('Name', { exact: true }).fill('Bistro 13');
  await press(page, /^Next/);
  await page.getByLabel('Orders URL').fill(pass.pos.ordersUrl);
  expect(await page.getByRole('button', { name: 'Generate Previous secret' }).count()).toBe(0);
  await press(page, /^Next/);
  expect(await problemOf(page, 'Secret')).toBe('Fill this in, or “Unsigned”.');
  await press(page, 'Generate Secret');
  expect(await page.getByLabel('Secret', { exact: true }).inputValue()).toMatch(/^whsec_.{44}$/);
  await page.getByRole('button', { name: 'Copy: Secret' }).waitFor();
  expect(await askAxe(page)).toEqual([]);
  await press(page, /^Next/);
  await press(page, 'Save');
  await says(page, 'Bistro 13 is stored.');
});

it('a change of settings does not overwrite a change that somebody else made meanwhile', async () => {
  const { page } = await pass.open('/console/locations/club-1');
  await press(page, 'Edit …');
  await page.getByLabel('Name', { exact: true }).fill('Club Nord');
  expect(await askAxe(page)).toEqual([]);
  await pass.system.query("UPDATE locations SET country = 'FR' WHERE location_id = 'club-1'");
  await press(page, 'Preview and save …');
  await says(page, 'Somebody changed this location meanwhile.');
  expect(await askAxe(page)).toEqual([]);
  await press(page, 'Reload');
  await until(async () => (await page.getByLabel('Country').inputValue()) === 'FR');
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Club Nord');
  await press(page, 'Preview and save …');
  const dialog = page.getByRole('dialog', { name: 'Save these changes?' });
  await dialog.getByRole('row', { name: 'Name Club Nord' }).waitFor();
  expect(await askAxe(page)).toEqual([]);
  await press(dialog, 'Save');
  await page.getByRole('heading', { level: 1, name: 'Club Nord' }).waitFor();
  const rows = await pass.system.query("SELECT name, country FROM locations WHERE location_id = 'club-1'");
  expect(rows).toEqual([{ name: 'Club Nord', country: 'FR' }]);

  await press(page, 'Remove …');
  await says(page.getByRole('dialog'), /^It cannot be removed now: it takes orders/);
});

it('a warning about changed settings is shown before and after they are saved', async () => {
  const square = { accessToken: 'a-token', baseUrl: pass.pos.ordersUrl };
  await pass.system.addLocation('brand-1', { ...square, locationId: 'L1' }, 'square');
  await pass.system.addLocation('brand-2', { ...square, locationId: 'L2' }, 'square');
  const { page } = await pass.open('/console/locations/brand-2');
  await press(page, 'Edit …');
  await page.getByLabel('Location id').fill('L1');
  await press(page, 'Preview and save …');
  const words = 'The location brand-1 has the same “Location ID”.';
  await says(page.getByRole('dialog'), words);
  expect(await askAxe(page)).toEqual([]);
  await press(page.getByRole('dialog'), 'Save');
  await page.getByText('saved', { exact: true }).waitFor();
  await says(page, words);
  expect(await page.getByText('Waiting orders are tried again.').count()).toBe(0);
  expect(await askAxe(page)).toEqual([]);
});

it('an integrator without other roles sees no orders, and can add a location', async () => {
  const typed = 'operator token issue --name ines --role integrator --location-groups brand-nord';
  const issued = await runJson<{ token: string }>(pass.system.env, typed.split(' '));
  const { page } = await pass.openLoggedOut('/console/');
  await page.getByLabel('Operator token').fill(issued.token);
  await press(page, 'Sign in');
  await page.getByRole('heading', { level: 1, name: 'Locations' }).waitFor();
  const pages = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();
  expect(pages).toEqual(['Locations', 'People']);
  await page.getByRole('link', { name: 'Club Nord', exact: true }).click();
  await says(page, /To pause it or make it busy, you need the role operator here/);
  expect(await page.getByRole('link', { name: /On the board|Traffic|In the audit/ }).count()).toBe(0);
  await page.getByRole('button', { name: 'Edit …' }).waitFor();

  await page.goto('/console/locations/new');
  await page.getByLabel(/^Standard API/).check();
  await page.getByLabel('Id', { exact: true }).fill('brand-nord:11');
  await page.getByLabel('Name', { exact: true }).fill('Bistro 11');
  expect(await page.getByLabel('Groups').inputValue()).toBe('brand-nord');
  await press(page, /^Next/);
  await page.getByLabel('Orders URL').fill('https://pos.example.com/orders');
  await page.getByLabel('Unsigned').selectOption('yes');
  await press(page, /^Next/);
  await press(page, 'Save');
  await says(page, 'Bistro 11 is stored.');
  await page.getByRole('button', { name: 'Make a token …' }).waitFor();
});

describe('a form that the service judges while it is filled in', () => {
  /** Holds so many answers to dry runs from now on. @returns what lets them go, once one was asked for */
  const hold = async (page: Page, path: string, most: number): Promise<() => Promise<void>> => {
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    let count = 0;
    await page.route(`**${path}?dryRun=true`, async (route) => {
      count += 1;
      if (count <= most) await held;
      await route.continue();
    });
    return async () => {
      const answered = page.waitForResponse(/dryRun=true/);
      letGo();
      await (await answered).finished();
      await page.evaluate('new Promise((then) => setTimeout(then, 200))');
    };
  };

  it('asks about a choice as it is after it was made', async () => {
    const { page } = await pass.open('/console/locations/new');
    await page.getByLabel(/^Standard API/).check();
    await page.getByLabel('Id', { exact: true }).fill('club-21');
    await page.getByLabel('Name', { exact: true }).fill('Bistro 21');
    await press(page, /^Next/);
    await says(page, 'Settings for Bistro 21');
    const asked = page.waitForRequest(/dryRun=true/);
    await page.getByLabel('Unsigned').selectOption('yes');
    expect(JSON.parse((await asked).postData() ?? '{}')).toMatchObject({ settings: { unsigned: true } });
  });

  it('stays on its last step when the answer about an earlier text comes late', async () => {
    const { page } = await pass.open('/console/locations/new');
    await page.getByLabel(/^Standard API/).check();
    await page.getByLabel('Id', { exact: true }).fill('club-20');
    await page.getByLabel('Name', { exact: true }).fill('Bistro 20');
    await press(page, /^Next/);
    await page.getByLabel('Unsigned').selectOption('yes');
    await page.getByLabel('Orders URL').fill('nonsense');
    await page.keyboard.press('Tab');
    await says(page, 'Orders URL is not a URL such as https://pos.example.com.');
    const letGo = await hold(page, '/locations/club-20', 1);
    const asked = page.waitForRequest(/dryRun=true/);
    await page.getByLabel('Orders URL').fill('https://old.example.com/orders');
    await page.keyboard.press('Tab');
    await asked;
    await page.getByLabel('Orders URL').fill('https://pos.example.com/orders');
    await press(page, /^Next/);
    await page.getByRole('button', { name: 'Save' }).waitFor();
    await letGo();
    await press(page, 'Save');
    await says(page, 'Bistro 20 is stored.');
  });

  it('saves only what its preview showed', async () => {
    const { page } = await pass.open('/console/locations/club-1');
    await press(page, 'Edit …');
    const letGo = await hold(page, '/locations/club-1', Infinity);
    await page.getByLabel('Address', { exact: true }).fill('Hafenstr. 1');
    await page.getByLabel('Address', { exact: true }).press('Enter');
    await page.getByLabel('Address', { exact: true }).pressSequentially('0');
    await letGo();
    await says(page, 'You changed the form while it was checked. Try again.');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  it('sends nothing for which the audit records a refusal', async () => {
    const typed = 'operator token issue --name iris --role integrator --location-groups brand-nord,brand-sued';
    const { token } = await runJson<{ token: string }>(pass.system.env, typed.split(' '));
    const { page } = await pass.open('/console/locations/new', { token });
    await page.getByLabel(/^Standard API/).check();
    await page.getByLabel('Id', { exact: true }).fill('brand-sued:30');
    await page.getByLabel('Time zone').fill('Nowhere');
    await page.keyboard.press('Tab');
    await press(page, 'Add the group brand-sued');
    await page.getByLabel('Address', { exact: true }).fill('Hafenstr. 1');
    await page.keyboard.press('Tab');
    await says(page, 'Time zone is not an IANA time zone such as Europe/Berlin.');
    expect(await pass.system.query("SELECT FROM audit WHERE action = 'be refused' AND actor_name = 'iris'")).toEqual(
      [],
    );
  });
});

it('a connect link is shown once, as a text and as a QR code', async () => {
  const { page } = await pass.open('/console/locations');
  const url = 'https://operators.example.com/connect/0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11';
  await page.route('**/console/api/locations/club-1', async (route) => {
    const answer = await route.fetch();
    const location = (await answer.json()) as { knows: object };
    await route.fulfill({ json: { ...location, knows: { ...location.knows, connectLink: true } } });
  });
  await page.route('**/console/api/locations/club-1/connect-links', (route) =>
    route.fulfill({ json: { linkId: 'link-1', url, expiresAt: '2027-01-31T18:00:00Z' } }),
  );
  await page.getByRole('link', { name: 'Club Nord', exact: true }).click();
  await press(page, 'Connect link …');
  const dialog = page.getByRole('dialog');
  await press(dialog, 'Make the link');
  expect(await dialog.locator('pre').textContent()).toBe(url);
  const code = dialog.getByRole('img', { name: 'QR code of the connect link' });
  expect((await code.boundingBox())?.width).toBeGreaterThan(200);
  expect(await askAxe(page)).toEqual([]);
  await press(dialog, 'Close');
  await page.locator('dialog').waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(url);
  // The page asks for the location periodically, also while it is closed.
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

it('connecting says what is left to do, with settings as the form calls them, or that nothing is left', async () => {
  const { page } = await pass.open('/console/locations');
  await page.route('**/console/api/locations/club-1', async (route) => {
    const answer = await route.fetch();
    const location = (await answer.json()) as { knows: object };
    await route.fulfill({ json: { ...location, knows: { ...location.knows, connect: true } } });
  });
  const todo = ['Put the secret into webhookSecret.'];
  await page.route('**/console/api/locations/club-1/connect', (route) =>
    route.fulfill({ json: { locationId: 'club-1', tokenId: 'token-1', done: ['It is done.'], todo: todo.splice(0) } }),
  );
  await page.getByRole('link', { name: 'Club Nord', exact: true }).click();
  const dialog = page.getByRole('dialog');
  for (const [said, other] of [
    ['These steps are shown only once. Do them before you close this.', 'Nothing is left to do.'],
    ['Nothing is left to do.', 'These steps are shown only once.'],
  ] as const) {
    await page.getByRole('button', { name: 'Connect …', exact: true }).click();
    await press(dialog, 'Connect');
    await says(dialog, said);
    expect(await dialog.getByText(other).count()).toBe(0);
    if (other.startsWith('Nothing')) await says(dialog, 'Put the secret into “Webhook secret”.');
    await press(dialog, 'Close');
    await dialog.waitFor({ state: 'detached' });
  }
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

it('locations, orders and the board can be limited to a group', async () => {
  await pass.system.seedOrder({ serviceOrderId: 'order-here', locationId: 'club-1' });
  await pass.system.seedOrder({ serviceOrderId: 'order-elsewhere', locationId: 'club-10' });
  const { page } = await pass.open('/console/locations?group=brand-nord');
  await says(page, /^\d of \d locations/);
  expect(await page.getByRole('link', { name: 'club-10' }).count()).toBe(0);
  await page.getByRole('link', { name: 'Club Nord', exact: true }).waitFor();
  for (const path of ['/console/orders?group=brand-nord', '/console?group=brand-nord']) {
    await page.goto(path);
    await seesLink(page, /order-here/);
    expect(await page.getByText('order-elsewhere').count()).toBe(0);
    expect(await page.getByLabel('Group').inputValue()).toBe('brand-nord');
  }
});

it.each(['webhooks', 'traffic', 'vendors', 'audit'])('%s can be limited to a group', async (name) => {
  const { page } = await pass.open(`/console/${name}`);
  const asked = page.waitForResponse((response) => response.url().includes('group=brand-nord'));
  await page.getByLabel('Group').selectOption('brand-nord');
  expect((await asked).status()).toBe(200);
  expect(new URL(page.url()).searchParams.get('group')).toBe('brand-nord');
});
