import { afterAll, beforeAll, expect, it } from 'vitest';
import { startHubrise, type HubriseSimulator } from '../../world/pos/hubrise/start-hubrise.ts';
import { startSquare, type SquareSimulator } from '../../world/pos/square/start-square.ts';
import { askOperator, type Operator } from '../../world/system/ask-operator.ts';
import { freePort } from '../../world/network/free-port.ts';
import { askAxe } from './open-browser.ts';
import { useConsole } from './open-console.ts';

let operator: Operator;
let square: SquareSimulator;
let hubrise: HubriseSimulator;

const pass = useConsole(async () => {
  const consoleUrl = `http://127.0.0.1:${await freePort()}`;
  [square, hubrise] = await Promise.all([startSquare({ byOauth: true }), startHubrise()]);
  square.oauth.redirectUrl = `${consoleUrl}/connect/callback`;
  return { env: { CONSOLE_URL: consoleUrl, PORT: new URL(consoleUrl).port, PUBLIC_URL: 'https://expediter.test' } };
});
beforeAll(async () => {
  operator = await askOperator(pass.system.urls[0] ?? '');
  const { refreshToken: _refreshToken, ...ofSquare } = square.settings;
  await pass.system.addLocation('nord', ofSquare, 'square');
  const { accessToken: _accessToken, ...ofHubrise } = hubrise.settings;
  await pass.system.addLocation('hub', { ...ofHubrise, clientId: hubrise.oauth.clientId }, 'hubrise');
});
afterAll(() => Promise.all([square?.stop(), hubrise?.stop()]));

it.each([
  ['Square', 'nord', () => square.url],
  ['HubRise', 'hub', () => hubrise.url],
])('an owner connects a restaurant with %s on a phone by a link', async (vendor, id, urlOf) => {
  const { body } = await operator.post(`/locations/${id}/connect-links`);
  const { pathname } = new URL(String(body['url']));
  const { page, complaints } = await pass.openLoggedOut(pathname, {
    asks: [urlOf()],
    viewport: { width: 360, height: 640 },
  });
  await page.getByRole('heading', { level: 1, name: `Connect this restaurant with ${vendor}` }).waitFor();
  await page.getByText(id, { exact: true }).waitFor();
  expect(await askAxe(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);

  await page.getByRole('button', { name: `Sign in at ${vendor}` }).click();
  await page.getByRole('link', { name: 'Deny' }).click();
  await page.getByText('You did not agree').waitFor();
  expect((await operator.post(`/locations/${id}/check`)).body).toMatchObject({ state: 'failed' });

  await page.goto(pathname);
  await page.getByRole('button', { name: `Sign in at ${vendor}` }).click();
  await page.getByRole('link', { name: 'Allow' }).click();
  await page.getByText('You granted access to').waitFor();
  expect(await askAxe(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  expect((await operator.post(`/locations/${id}/check`)).body).toMatchObject({ state: 'failed' });
  await page.getByRole('button', { name: 'Yes, connect' }).click();
  await page.getByRole('heading', { level: 1, name: 'Done. You can close this page' }).waitFor();
  expect(await askAxe(page)).toEqual([]);
  expect((await operator.post(`/locations/${id}/check`)).body).toMatchObject({ state: 'ok' });
  expect(complaints.splice(0)).toEqual([]);

  await page.goto(pathname);
  await page.getByRole('heading', { level: 1, name: 'This link does not work' }).waitFor();
  expect(complaints.splice(0)).toEqual([`404: ${pathname}`]);
});
