import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startHubrise, type HubriseSimulator } from '../simulators/start-hubrise.ts';
import { runJson } from '../support/run-json.ts';
import { startPos, type Pos } from '../support/start-pos.ts';
import { post, statusWebhook } from '../support/start-system.ts';
import { until } from '../support/until.ts';
import { openConsole, type Console } from './open-console.ts';

let pass: Console;
let pos: Pos;
let hubrise: HubriseSimulator;

beforeAll(async () => {
  [pos, hubrise] = await Promise.all([startPos(), startHubrise()]);
  pass = await openConsole({ env: { PUBLIC_URL: 'http://127.0.0.1:9' } });
  await pass.system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  await pass.system.addLocation('hub-1', hubrise.settings, 'hubrise');
  await pass.system.addLocation('hub-2', { ...hubrise.settings, accessToken: 'another' }, 'hubrise');
});
afterEach(() => expect(pass.complaints()).toEqual([]));
afterAll(async () => {
  await pass?.stop();
  await Promise.all([pos?.stop(), hubrise?.stop()]);
});

const confirm = (page: Page, title: string, action: string): Promise<void> =>
  page.getByRole('dialog', { name: title }).getByRole('button', { name: action, exact: true }).click();

describe('a location', () => {
  it('is found in the list', async () => {
    const { page } = await pass.open('/console/locations');
    await page.getByLabel('Location', { exact: true }).fill('club');
    await page.getByText('1 of 3 locations').waitFor();
    await page.getByRole('link', { name: 'club-1' }).click();
    await page.getByRole('heading', { level: 1, name: 'club-1' }).waitFor();
  });

  it('says whether its settings reach the POS, and what to do where they do not', async () => {
    const right = await pass.open('/console/locations/hub-1');
    await right.page.getByRole('button', { name: 'Test connection' }).click();
    await right.page.getByText(/The settings reach the POS/).waitFor();

    const wrong = await pass.open('/console/locations/hub-2');
    await wrong.page.getByRole('button', { name: 'Test connection' }).click();
    await wrong.page.getByText(/HubRise refuses accessToken/).waitFor();
    await wrong.page.getByText('What to do:').waitFor();
    expect(hubrise.requests).toBe(0);
  });
});

describe('a token', () => {
  it('is made by a press, and shut out by another', async () => {
    const { page } = await pass.open('/console/locations/club-1');
    await page.getByRole('button', { name: 'Make a token …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Make a token' });
    await dialog.getByLabel('What it is for').fill("the till's, 2027");
    await dialog.getByLabel('Expires').selectOption('after 90 days');
    await dialog.getByRole('button', { name: 'Make it' }).click();
    const { pathname, search, searchParams } = new URL((await dialog.locator('pre').textContent()) ?? '');
    const token = searchParams.get('token') ?? '';
    const webhook = `${pass.system.urls[0]}${pathname}${search}`;
    const report = statusWebhook({ serviceOrderId: 'order-none', providerOrderId: 'pos-none', status: 'READY' });
    expect((await post(webhook, report)).status).toBe(200);

    await page.reload();
    const tokens = page.getByRole('list', { name: 'Tokens' });
    const issued = tokens.getByRole('listitem').filter({ hasText: "the till's, 2027" });
    await issued.getByText('valid').waitFor();
    await issued
      .getByText(/^Used|just now/)
      .first()
      .waitFor();
    await issued.getByRole('button', { name: /^Revoke/ }).click();
    await confirm(page, "Revoke the till's, 2027?", 'Revoke');
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
