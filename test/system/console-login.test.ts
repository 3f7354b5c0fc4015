import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { moveClock, prepareClock } from '../../world/processes/move-clock.ts';
import { until } from '../../world/processes/until.ts';
import { heading, press } from './on-page.ts';
import { useConsole } from './open-console.ts';

// Whether there is a session is asked, and answered in HTTP's own words.
const pass = useConsole({ prepare: prepareClock }, { refused: /^401: \/console\/session$/ });

const logIn = async (page: Page, token: string): Promise<void> => {
  await page.getByLabel('Operator token').fill(token);
  await press(page, 'Sign in');
};

describe('a person who opens a link without a session', () => {
  it('sees only an error after a wrong token', async () => {
    const { page, context } = await pass.openLoggedOut('/console/webhooks');
    await logIn(page, 'not-the-token');
    await page.getByText('This is not a valid operator token. Check it and try again.').waitFor();
    expect(await page.getByLabel('Operator token').getAttribute('aria-invalid')).toBe('true');
    await logIn(page, `"${OPERATOR_TOKEN}"`);
    await page.getByText('The token has quotation marks around it').waitFor();
    expect(await context.cookies()).toEqual([]);
    expect(await page.getByRole('navigation').count()).toBe(0);
  });

  it('can paste a token of any length, and nothing of it is cut off', async () => {
    const { page } = await pass.openLoggedOut();
    await page.getByLabel('Operator token').focus();
    await page.keyboard.insertText('x'.repeat(300));
    expect(await page.getByLabel('Operator token').inputValue()).toHaveLength(300);
  });

  it('gets to the page of the link with the right token', async () => {
    const { page } = await pass.openLoggedOut('/console/webhooks?outcome=dropped');
    await logIn(page, ` ${OPERATOR_TOKEN} `);
    await heading(page, 'Webhooks');
    expect(new URL(page.url())).toMatchObject({ pathname: '/console/webhooks', search: '?outcome=dropped' });
    expect(await page.title()).toBe('Webhooks · The pass');
  });

  it('gets a session cookie that no script, other site or other path can read', async () => {
    const { page, context } = await pass.openLoggedOut();
    await logIn(page, OPERATOR_TOKEN);
    await heading(page, 'Board');
    // A translation replaces texts, and what is replaced does not change any more.
    expect(await page.locator('.board-standing').getAttribute('translate')).toBe('no');
    const cookies = await context.cookies(`${pass.system.urls[0]}/console/`);
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: 'Strict', path: '/' }]);
    expect(await page.evaluate('document.cookie')).toBe('');
    expect(JSON.stringify(await context.storageState())).not.toContain(OPERATOR_TOKEN);
    expect(await page.content()).not.toContain(OPERATOR_TOKEN);
  });

  it('stays signed out after signing out', async () => {
    const { page, context } = await pass.openLoggedOut();
    await logIn(page, OPERATOR_TOKEN);
    await press(page, 'Sign out');
    await page.getByLabel('Operator token').waitFor();
    expect(await context.cookies()).toEqual([]);
    await page.reload();
    await page.getByLabel('Operator token').waitFor();
  });

  it('is signed out in every tab after signing out in one, and sees if it failed', async () => {
    const { page, context } = await pass.open();
    const other = await context.newPage();
    await other.goto('/console/orders');
    await heading(other, 'Orders');
    await page.route('/console/session', (route) => route.fulfill({ status: 503, json: { detail: 'come again' } }));
    await press(page, 'Sign out');
    await page.getByText('You are still signed in: come again').waitFor();
    await page.unroute('/console/session');
    expect(pass.complaints()).toContain('503: /console/session');
    await press(page, 'Sign out');
    await other.getByLabel('Operator token').waitFor();
    expect(await other.getByRole('navigation').count()).toBe(0);
  });

  it('sees an explanation if the browser would not keep the session', async () => {
    // This machine too, but not in the eyes of a browser.
    const plain = (pass.system.urls[0] ?? '').replace('127.0.0.1', '0.0.0.0');
    const { page } = await pass.openLoggedOut(`${plain}/console/`);
    await page.getByText('This page was loaded by plain http').waitFor();
    await logIn(page, OPERATOR_TOKEN);
    await page.getByText('open the console by https').waitFor();
    expect(pass.complaints()).toContain('403: /console/session');

    const { page: forgetful } = await pass.openLoggedOut();
    await forgetful.route('/console/session', async (route) => {
      const { 'set-cookie': _, ...headers } = (await route.fetch()).headers();
      await route.fulfill({ status: route.request().method() === 'POST' ? 204 : 401, headers });
    });
    await logIn(forgetful, OPERATOR_TOKEN);
    await forgetful.getByText('stores no cookie').waitFor();
  });

  it('returns to the same page by signing in again after the session has ended', async () => {
    const { page, context } = await pass.open('/console/orders');
    await heading(page, 'Orders');
    await moveClock(pass.system.databaseUrl, { days: 1 });
    // The service goes by Postgres's clock, which it looks at every few seconds.
    await until(async () => (await context.request.get('/console/session')).status() === 401, 30_000);
    await page.getByRole('link', { name: 'Locations' }).click();
    await page.getByLabel('Operator token').waitFor();
    await logIn(page, OPERATOR_TOKEN);
    await heading(page, 'Locations');
    expect(new URL(page.url()).pathname).toBe('/console/locations');
    expect(pass.complaints()).toContainEqual(expect.stringMatching(/^401: \/console\/api\//));
  });
});
