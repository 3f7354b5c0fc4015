import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../world/network/free-port.ts';
import { serveHttp } from '../../world/network/serve-http.ts';
import { startOidcProvider, type OidcProvider } from '../../world/issuer/start-oidc-provider.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { askAxe } from './open-browser.ts';
import { heading, isLive, press, says, seesLink } from './on-page.ts';
import { useConsole } from './open-console.ts';

/** Time in which who may no longer read a stream is cut off. */
const SOON_MS = 5_000;
/** Time for which a process believes what it knows of a session. */
const FRESH_MS = 2_000;
/** Everything that changes something, or shows member data, as its button is called. */
const ACTS =
  /^(Retry now|Enter |Cancel at|Replay|Pause|Resume|Test connection|Revoke|Reveal|Give|Take|Make|Hand over|Close the case|Snooze|I have this|Add the note|End )/;

let oidc: OidcProvider;
let other: System;
let webhookId: string;
const ORDER = 'order-held';

const pass = useConsole(
  async () => {
    const consoleUrl = `http://127.0.0.1:${await freePort()}`;
    oidc = await startOidcProvider({ consoleUrl });
    return { env: { ...oidc.env, PORT: new URL(consoleUrl).port } };
  },
  // What is refused, and streams that are cut off, is what this is about.
  { refused: /^(401: \/console\/session|40[134]: \/console\/api\/|failed: .*\/live\S* net::ERR_INCOMPLETE_CHUNKED)/ },
);

beforeAll(async () => {
  const { system, pos } = pass;
  other = await startSystem({ env: { ...system.env, PORT: '0' }, databaseUrl: system.databaseUrl, jobs: 'all' });
  for (const [login, groups] of [
    ['vera', ['managers']],
    ['grace', ['team']],
    ['ada', ['team']],
    ['nobody', ['team']],
    ['mallory', []],
  ] as const) {
    oidc.people.set(login, { email: `${login}@club.example`, email_verified: true, groups });
  }
  await system.query(
    `INSERT INTO operator_grants (grant_id, email, roles, locations)
     VALUES (gen_random_uuid(), 'vera@club.example', '{viewer}', '{club-1}'),
            (gen_random_uuid(), 'grace@club.example', '{viewer,operator}', NULL),
            (gen_random_uuid(), 'ada@club.example', '{viewer,admin}', NULL)`,
  );
  for (const locationId of ['club-1', 'club-2']) await system.addLocation(locationId, { ordersUrl: pos.ordersUrl });
  await system.seedOrder({ serviceOrderId: 'order-sent', locationId: 'club-1' });
  await system.seedOrder({ serviceOrderId: 'order-elsewhere', locationId: 'club-2' });
  await pos.sendStatus(await system.webhookUrl('club-1'), { serviceOrderId: 'order-sent', status: 'RECEIVED' });
  const [webhook] = await system.query('SELECT id::text AS id FROM webhooks LIMIT 1');
  webhookId = String(webhook?.['id']);
  pos.behave = () => ({ status: 404 });
  await system.placeOrder({ serviceOrderId: ORDER });
  await until(async () => (await system.placement(ORDER))?.['state'] === 'held');
});
afterAll(() => Promise.all([other?.stop(), oidc?.stop()]));

/** Somebody who has pressed the button and was at the issuer, on the page of that path. */
async function signIn(login: string, path = '/console/'): Promise<Page> {
  const { page } = await pass.openLoggedOut(path, { asks: [oidc.issuer, other.urls[0] ?? ''] });
  await page.getByRole('link', { name: 'Sign in' }).click();
  await signInThere(page, login);
  return page;
}

async function signInThere(page: Page, login: string): Promise<void> {
  await page.locator('[name=login]').fill(login);
  await press(page, 'Sign in');
}

describe('a person who signs in by OpenID Connect', () => {
  it('gets to the page of their link, which shows their name', async () => {
    const page = await signIn('grace', '/console/webhooks?outcome=dropped');
    await heading(page, 'Webhooks');
    expect(new URL(page.url()).search).toBe('?outcome=dropped');
    await page.getByTitle('Signed in as grace@club.example').waitFor();
    expect(await page.evaluate('document.cookie')).toBe('');
  });

  it.each([
    ['nobody', /^You have no role here yet. Ask an admin/],
    ['mallory', /^You are not allowed to sign in here. Ask the platform team/],
  ])('sees as %s why they may not sign in', async (login, words) => {
    const page = await signIn(login);
    await says(page, words);
    expect(new URL(page.url()).search).toBe('');
    expect(await askAxe(page)).toEqual([]);
  });
});

it('a person signs in the command line by a click on "Allow"', async () => {
  const command = await serveHttp(async (_request, response) => void response.end('You are signed in.'));
  const ask = { port: new URL(command.url).port, challenge: 'c'.repeat(43), state: 's'.repeat(43) };
  const path = `/login?${new URLSearchParams(ask).toString()}`;
  const { page } = await pass.openLoggedOut(path, { asks: [oidc.issuer, command.url] });
  await signInThere(page, 'grace');
  await says(page, `at 127.0.0.1:${ask.port}, on the machine of this browser, asks to sign in as grace@club.example.`);
  expect(await askAxe(page)).toEqual([]);
  await press(page, 'Allow');
  await says(page, 'You are signed in.');
  expect(page.url()).toMatch(new RegExp(`^${command.url}/\\?code=[^&]+&state=${ask.state}&`));
  await command.stop();
});

describe('a manager who views one location', () => {
  let page: Page;
  beforeAll(async () => {
    page = await signIn('vera');
    await heading(page, 'Board');
  });

  it('sees that location, its orders and no others', async () => {
    await page.goto('/console/locations');
    await says(page, '1 location');
    expect(await page.getByRole('link', { name: 'club-2' }).count()).toBe(0);
    await page.goto('/console/orders/order-elsewhere');
    await says(page, /No order .* was found/);
    await page.goto('/console/');
    await seesLink(page, /order-held/);
    expect(await page.getByText('order-elsewhere').count()).toBe(0);
  });

  it.each([
    [`/console/orders/${ORDER}`, 'To retry it, you need the role operator here.'],
    ['/console/orders/order-sent', 'To cancel it, you need the role operator here.'],
    ['/console/orders/order-sent', 'To reveal member and notes, you need the role member-data here.'],
    ['/console/locations/club-1', 'To pause it or make it busy, you need the role operator here.'],
    ['/console/locations/club-1', 'To change it, you need the role integrator here. Ask an administrator.'],
    ['/console/webhooks?outcome=applied', 'To replay them, you need the role operator here.'],
    ['/console/people', 'viewer at club-1'],
  ])('has no button for changes on %s, and sees why: %s', async (path, why) => {
    await page.goto(path);
    await says(page, why);
    const names = await page.getByRole('button').evaluateAll((all) => all.map(({ textContent }) => textContent));
    const enabled = await page.locator('button:enabled').allTextContents();
    expect(enabled.filter((name) => ACTS.test(name.trim()))).toEqual([]);
    expect(names.length).toBeGreaterThan(0);
    expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
  });

  it('has no button for changes on a webhook', async () => {
    await page.goto(`/console/webhooks/${webhookId}`);
    await says(page, 'To replay it, you need the role operator here.');
    await says(page, 'To reveal headers and body, you need the role member-data here.');
    expect((await page.locator('button:enabled').allTextContents()).filter((name) => ACTS.test(name))).toEqual([]);
  });
});

describe('an operator', () => {
  it('who replays a webhook or pauses a location is named in the timeline', async () => {
    const page = await signIn('grace', `/console/webhooks/${webhookId}`);
    await press(page, 'Replay …');
    await press(page, 'Replay the webhook');
    await says(page, 'The webhook was replayed');
    await page.goto('/console/orders/order-sent');
    const story = page.getByRole('region', { name: 'Timeline' });
    await story.getByText('grace@club.example replayed a webhook').waitFor();

    await page.goto('/console/locations/club-1');
    await press(page, 'Pause …');
    await page.getByLabel('How long').selectOption('until somebody resumes it');
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
    const actions = page.getByRole('list', { name: /^What operators did here/ });
    await actions.getByText('grace@club.example paused the location').waitFor();
    await press(page, 'Resume …');
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
    await actions.getByText('grace@club.example resumed the location').waitFor();
    expect(await askAxe(page)).toEqual([]);
  });

  it('who has lost the role sees an explanation instead of the button', async () => {
    const page = await signIn('grace', `/console/orders/${ORDER}`);
    await press(page, 'Retry now');
    const grants = (roles: string): Promise<unknown> =>
      pass.system.query('UPDATE operator_grants SET roles = $1::text[] WHERE email = $2', [
        roles,
        'grace@club.example',
      ]);
    await grants('{viewer}');
    await new Promise((later) => setTimeout(later, FRESH_MS));
    await page.getByRole('dialog').getByRole('button', { name: 'Retry now' }).click();
    await page.getByRole('alert').getByText('You need the role operator for this request.').waitFor();
    await press(page, 'Back');
    await says(page, 'To retry it, you need the role operator here.');
    await grants('{viewer,operator}');
  });
});

describe('an admin', () => {
  it('grants a role after signing in again in a new tab, without typing anything twice', async () => {
    const page = await signIn('ada', '/console/people');
    await heading(page, 'People');
    expect(await askAxe(page)).toEqual([]);
    await pass.system.query(
      "UPDATE operator_sessions SET signed_in_at = now() - interval '16 minutes' WHERE name LIKE 'ada%'",
    );
    await page.reload();
    await press(page, 'Give roles …');
    const dialog = page.getByRole('dialog', { name: 'Give roles' });
    expect(await askAxe(page)).toEqual([]);
    await dialog.getByLabel('E-mail address').fill('Nobody@club.example');
    await dialog.getByLabel('Where').selectOption('some');
    await dialog.getByRole('group', { name: 'Locations' }).getByLabel('club-1').check();
    await new Promise((later) => setTimeout(later, FRESH_MS));
    await dialog.getByRole('button', { name: 'Give the roles' }).click();

    const again = page.getByRole('dialog', { name: 'Sign in again' });
    const link = again.getByRole('link', { name: 'Sign in, in a new tab' });
    await link.waitFor();
    expect(await askAxe(page)).toEqual([]);
    await again.getByRole('button', { name: 'Continue' }).click();
    await again.getByText('You have not signed in again yet.').waitFor();
    const [tab] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
    await signInThere(tab, 'ada');
    await heading(tab, 'People');
    await tab.close();
    await again.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('list', { name: 'Roles' }).getByText('nobody@club.example').waitFor();

    const nobody = await signIn('nobody', '/console/locations');
    await says(nobody, '1 location');
    await press(page, /^Take away from nobody@club\.example/);
    await press(page, 'Take the roles away');
    await page.getByRole('list', { name: 'Roles' }).getByText('nobody@club.example').waitFor({ state: 'detached' });
    await nobody.getByLabel('Operator token').waitFor();
    await says(page.getByRole('list', { name: /^What was taken away/ }), /^ada\S* took roles away/);
  });

  it('issues a token that works, and is refused after its revocation', async () => {
    const page = await signIn('ada', '/console/people');
    await press(page, 'Make a token …');
    const dialog = page.getByRole('dialog', { name: 'Make a named token' });
    await dialog.getByLabel(/^Name/).fill('nightly');
    await dialog.getByLabel(/operator:/).check();
    await dialog.getByLabel('Where').selectOption('all');
    await dialog.getByRole('button', { name: 'Make the token' }).click();
    const token = (await dialog.locator('pre').textContent()) ?? '';
    expect(token).toMatch(/^exo_/);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('list', { name: 'Named tokens' }).getByText('nightly').waitFor();
    // A closed dialog is removed a moment later.
    await until(async () => !(await page.content()).includes(token));

    const { page: program } = await pass.openLoggedOut('/console/people');
    await program.getByLabel('Operator token').fill(token);
    await press(program, 'Sign in with the token');
    await says(program, 'operator at all locations');
    await press(page, 'Revoke nightly');
    await press(page, 'Revoke the token');
    await page.getByRole('list', { name: 'Named tokens' }).getByText('revoked').waitFor();
    await program.getByLabel('Operator token').waitFor();
  });

  it('finds in the audit who replayed a webhook, and ends the session of that person', async () => {
    const laptop = await signIn('grace', '/console/traffic');
    await heading(laptop, 'Traffic');
    const page = await signIn('ada', '/console/audit');
    await page.getByLabel('What', { exact: true }).selectOption('replay');
    const actions = page.getByRole('list', { name: 'What was done' });
    await actions.getByText('grace@club.example replayed a webhook').waitFor();
    await until(async () => (await actions.getByRole('listitem').count()) === 1);
    await actions.getByText('from 127.0.0.1').waitFor();
    expect(await askAxe(page)).toEqual([]);
    await actions.getByRole('link', { name: 'the webhook' }).click();
    await heading(page, 'Webhook of club-1');

    await page.goto('/console/people');
    const sessions = page.getByRole('list', { name: 'Who is signed in' });
    const ofGrace = sessions.getByRole('button', { name: /^End grace/ });
    await ofGrace.first().waitFor();
    for (let left = await ofGrace.count(); left > 0; left = await ofGrace.count()) {
      await ofGrace.first().click();
      await press(page, 'End the session');
      await until(async () => (await ofGrace.count()) < left);
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await laptop.getByLabel('Operator token').waitFor();
  });
});

it('signing out everywhere signs out another browser at another process within five seconds', async () => {
  const desk = await signIn('vera', '/console/people');
  await heading(desk, 'People');
  const phone = await signIn('vera');
  await phone.goto(`${other.urls[0]}/console/`);
  await isLive(phone);
  // In addition to the page's own, which the page closes when it hears of the end in another way.
  await phone.evaluate(`void (window.ended = new Promise((resolve) => {
    const stream = new EventSource('/console/api/live');
    stream.addEventListener('complete', () => { window.isOpen = true; });
    stream.addEventListener('error', () => { stream.close(); resolve(Date.now()); });
  }))`);
  await until(async () => (await phone.evaluate('window.isOpen')) === true);

  await desk.getByRole('button', { name: 'Sign me out everywhere …' }).click();
  const at = Date.now();
  await press(desk, /^Sign me out everywhere$/);
  const ms = Number(await phone.evaluate('window.ended')) - at;
  expect(ms).toBeLessThan(SOON_MS);
  await desk.getByRole('link', { name: 'Sign in' }).waitFor();
  await phone.getByRole('link', { name: 'Sign in' }).waitFor();
  expect(Date.now() - at).toBeLessThan(2 * SOON_MS);
  await phone.getByText(/^Your session has ended: /).waitFor();
  expect(await desk.getByText(/^Your session has ended/).count(), 'after an own sign-out').toBe(0);
});
