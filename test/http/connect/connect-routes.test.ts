import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { endUnconfirmed } from '../../../src/core/locations/connect-grants.ts';
import { seal, unseal, parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { deleteOld } from '../../../src/core/retention/retention-rules.ts';
import { startHubrise, type HubriseSimulator } from '../../../world/pos/hubrise/start-hubrise.ts';
import { MERCHANT, OTHER_MERCHANT } from '../../../world/pos/square/square-oauth.ts';
import { startSquare, type SquareSimulator } from '../../../world/pos/square/start-square.ts';
import { BEHIND_US, fromElsewhere } from '../../../world/network/from-elsewhere.ts';
import {
  askOperator,
  OPERATOR_TOKEN,
  sendAsIs,
  type Operator,
  type OperatorAnswer,
} from '../../../world/system/ask-operator.ts';
import { SHARED_ENV } from '../../../world/system/fixtures.ts';
import { nameToken, OWN_PAGE } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { browse, locationOf, type Browser } from '../../../world/issuer/sign-in-by-oidc.ts';

/** Nobody listens there. */
const origin = 'http://127.0.0.1:8080';
const CALLBACK = `${origin}/connect/callback`;
const CONFIRM = `${origin}/connect/confirm`;
const keys = parseSettingsKeys(SHARED_ENV.SETTINGS_KEY);

let stage: Stage;
let operator: Operator;
let square: SquareSimulator;
let hubrise: HubriseSimulator;

beforeAll(async () => {
  [square, hubrise] = await Promise.all([startSquare({ byOauth: true }), startHubrise()]);
  square.oauth.redirectUrl = CALLBACK;
  stage = await startStage({
    env: { ...BEHIND_US, OPERATOR_TOKEN, CONSOLE_URL: origin, PUBLIC_URL: 'https://expediter.test' },
  });
  operator = await askOperator(stage.app);
});
beforeEach(async () => {
  square.oauth.signsInAsAnother = false;
  square.oauth.withdrawn.clear();
  square.fail = undefined;
  await stage.query('DELETE FROM locations');
  const { refreshToken: _refreshToken, ...unconnected } = square.settings;
  await stage.addLocation('nord', unconnected, 'square');
  await stage.query(`UPDATE locations SET name = 'Trattoria "Nord" <b>'`);
  const { accessToken: _accessToken, ...ofHubrise } = hubrise.settings;
  await stage.addLocation('hub', { ...ofHubrise, clientId: hubrise.oauth.clientId }, 'hubrise');
});
afterAll(async () => {
  await stage?.stop();
  await Promise.all([square?.stop(), hubrise?.stop()]);
});

async function makeLink(locationId = 'nord'): Promise<string> {
  const { status, body } = await operator.post(`/locations/${locationId}/connect-links`);
  expect(status).toBe(200);
  return String(body['url']);
}
const browser = (): Browser => browse({ [origin]: stage.app });
/** Sends the form of a page, as a browser does. */
async function press(by: Browser, url: string, answer: string, headers = OWN_PAGE): Promise<OperatorAnswer> {
  const [, state = ''] = /name="state" value="([^"]+)"/.exec((await by.get(url)).text) ?? [];
  return by.post(url, { state, answer }, headers);
}
/** Opens the link's page and presses its button. @returns the vendor's page */
async function start(by: Browser, link: string): Promise<string> {
  const { headers } = await press(by, link, 'start');
  return /^0; url=(.+)$/.exec(headers.get('refresh') ?? '')?.[1] ?? '';
}
/** Where the vendor's page leads after the owner agreed, or did not. */
async function decide(by: Browser, page: string, words: 'Allow' | 'Deny' = 'Allow'): Promise<string> {
  const { text } = await by.get(page);
  return (new RegExp(`href="([^"]+)">${words}`).exec(text)?.[1] ?? '').replaceAll('&amp;', '&');
}
/** Follows a link up to the way back, which the browser has not opened yet. */
async function callbackOf(by: Browser, link: string): Promise<string> {
  return decide(by, await start(by, link));
}
/** The owner agrees at the vendor, and comes back. @returns the page that asks whether this is the right account */
async function agree(by: Browser, link: string): Promise<OperatorAnswer> {
  return by.get(locationOf(await by.get(await callbackOf(by, link)), link));
}
/** All that an owner does who agrees to everything. */
async function finish(by: Browser, link: string): Promise<OperatorAnswer> {
  await by.get(await callbackOf(by, link));
  return press(by, CONFIRM, 'yes');
}
const endUnconfirmedGrants = (): Promise<void> => {
  const rules = { registry: stage.app.providers.registry, keys, publicUrl: 'https://expediter.test' };
  const { log, database, providers } = stage.app;
  return endUnconfirmed({ ...providers, pool: stage.pool, now: database.clock.now, rules, log });
};
const saying = (status: number, words: string): object => ({ status, text: expect.stringContaining(words) });
async function settings(locationId = 'nord'): Promise<Record<string, unknown>> {
  const [row] = await stage.query('SELECT settings FROM locations WHERE location_id = $1', [locationId]);
  return (await unseal(keys, String(row?.['settings']), `locations/${locationId}`)) as Record<string, unknown>;
}
async function lastAction(): Promise<Record<string, unknown> | undefined> {
  const [action] = await stage.query(
    `SELECT actor_kind, action, location_id, outcome, after FROM audit LEFT JOIN audit_outcomes USING (audit_id)
     ORDER BY audit_id DESC LIMIT 1`,
  );
  return action;
}

describe('a connect link', () => {
  it('leads the owner to Square and back, and stores the refresh token in the settings', async () => {
    const by = browser();
    const link = await makeLink();
    const page = await by.get(link);
    expect(page.status).toBe(200);
    expect(page.text).toContain('Trattoria &quot;Nord&quot; &lt;b&gt; (nord)');
    expect(page.text).toContain('Sign in at Square');
    expect(await stage.query('SELECT used_at FROM connect_links')).toEqual([{ used_at: null }]);

    const vendors = new URL(await start(by, link));
    expect(vendors.origin + vendors.pathname).toBe(`${square.url}/oauth2/authorize`);
    const callback = await by.get(await decide(by, vendors.href));
    const asks = await by.get(locationOf(callback, CALLBACK));
    expect(asks).toMatchObject(
      saying(200, `You granted access to Trattoria Berlin (${MERCHANT}) for Trattoria &quot;Nord`),
    );
    expect(await settings()).not.toHaveProperty('refreshToken');
    expect(await lastAction()).toMatchObject({ outcome: 'done', after: 'waits' });
    expect(await press(by, CONFIRM, 'yes')).toMatchObject(saying(200, 'Done. You can close this page'));
    expect(await settings()).toMatchObject({ refreshToken: square.oauth.refreshToken, merchantId: MERCHANT });
    expect(await lastAction()).toEqual({
      actor_kind: 'nobody',
      action: 'connect by link',
      location_id: 'nord',
      outcome: 'done',
      // Square lets only an application's own token subscribe webhooks, so that is left to an operator.
      after: 'granted',
    });
    expect(stage.woken()).toBeGreaterThan(0);
    const { body } = await operator.post('/locations/nord/check');
    expect(body).toMatchObject({ state: 'ok' });
    expect(await stage.query('SELECT FROM webhook_tokens WHERE revoked_at IS NULL')).toEqual([]);
  });

  it('leads the owner to HubRise and back, and sets the callback at HubRise', async () => {
    const by = browser();
    expect(await agree(by, await makeLink('hub'))).toMatchObject(
      saying(200, 'You granted access to Paris of Bella Pizza'),
    );
    expect(await press(by, CONFIRM, 'yes')).toMatchObject(saying(200, 'Done. You can close this page'));
    expect(await settings('hub')).toMatchObject({ accessToken: hubrise.settings['accessToken'] });
    expect(hubrise.callback.url).toMatch(/^https:\/\/expediter\.test\/webhook\/hubrise\/hub\?token=exw_/);
    expect(await lastAction()).toMatchObject({ outcome: 'done', after: 'connected' });
    expect(hubrise.refusals).toEqual([]);
  });

  it('works only once, and is answered 404 after that', async () => {
    const link = await makeLink();
    const [one, other] = [browser(), browser()];
    const callback = await callbackOf(other, link);
    await finish(one, link);
    expect((await one.get(link)).status).toBe(404);
    expect(await other.get(callback)).toMatchObject(saying(404, 'Ask the person who sent it for a new link'));
  });

  it('ends the earlier link of its location', async () => {
    const [earlier, ofHub] = [await makeLink(), await makeLink('hub')];
    const link = await makeLink();
    const statuses = await Promise.all([earlier, ofHub, link].map(async (each) => (await browser().get(each)).status));
    expect(statuses).toEqual([404, 200, 200]);
  });

  it('connects only one of two owners who finish at the same moment', async () => {
    const link = await makeLink();
    const browsers = [browser(), browser()];
    const callbacks = await Promise.all(browsers.map((by) => callbackOf(by, link)));
    await Promise.all(browsers.map((by, i) => by.get(callbacks[i] ?? '')));
    const confirmed = await Promise.all(browsers.map((by) => press(by, CONFIRM, 'yes')));
    expect(new Set(confirmed.map(({ status }) => status))).toEqual(new Set([200, 400]));
  });

  it('ends after 72 hours, even during a sign-in', async () => {
    const link = await makeLink();
    const lasts = `SELECT expires_at - created_at = interval '72 h' AS is_right FROM connect_links`;
    expect(await stage.query(lasts)).toEqual([{ is_right: true }]);
    const by = browser();
    const callback = await callbackOf(by, link);
    await stage.query('UPDATE connect_links SET expires_at = now()');
    expect((await by.get(link)).status).toBe(404);
    expect((await by.get(callback)).status).toBe(404);
    expect(await settings()).not.toHaveProperty('refreshToken');
  });

  it('is deleted 30 days after it expired', async () => {
    await makeLink();
    await makeLink('hub');
    await stage.query(
      `UPDATE connect_links SET expires_at = now() - CASE location_id WHEN 'hub' THEN interval '721 h' ELSE interval '719 h' END`,
    );
    expect(await deleteOld(stage.pool, 'deletion of old connect links', 30 * 86_400)).toEqual([1]);
    expect(await stage.query('SELECT location_id FROM connect_links')).toEqual([{ location_id: 'nord' }]);
  });

  it('ends when its location moves to another integration', async () => {
    const link = await makeLink();
    await stage.addLocation('nord', { ordersUrl: 'http://127.0.0.1:9/orders' });
    expect((await browser().get(link)).status).toBe(404);
  });

  it('cannot be made for a POS without a page for owners, or for an accessToken in the settings', async () => {
    await stage.addLocation('own', { ordersUrl: 'http://127.0.0.1:9/orders' });
    expect(await operator.post('/locations/own/connect-links')).toMatchObject(saying(409, 'has no page'));
    await stage.addLocation('own', { accessToken: 'EAAA', locationId: 'L1' }, 'square');
    expect(await operator.post('/locations/own/connect-links')).toMatchObject(saying(409, 'accessToken'));
  });
});

describe("an owner's sign-in at the vendor", () => {
  it('is answered 400 in a browser that did not start it', async () => {
    const by = browser();
    const callback = await callbackOf(by, await makeLink());
    expect(await browser().get(callback)).toMatchObject(saying(400, 'It was started in another browser'));
    expect((await by.get(callback)).status).toBe(303);
  });

  it('is finished only with the state that it started with', async () => {
    const link = await makeLink();
    const [by, attacker] = [browser(), browser()];
    await start(by, link);
    // The attacker wants the owner's browser to connect the attacker's account.
    const callback = await callbackOf(attacker, link);
    expect((await by.get(callback)).status).toBe(400);
    expect(await settings()).not.toHaveProperty('refreshToken');
    expect((await by.get(link)).status).toBe(200);
  });

  it('is answered 400 after an hour', async () => {
    const by = browser();
    const callback = await callbackOf(by, await makeLink());
    const cookies = by.cookies.get(origin);
    const flow = await unseal(keys, cookies?.get('expediter_connect') ?? '', 'connect/sign-in');
    const startedAt = Date.now() - 3_601_000; // Postgres's clock may differ a little.
    cookies?.set('expediter_connect', await seal(keys, { ...(flow as object), startedAt }, 'connect/sign-in'));
    expect((await by.get(callback)).status).toBe(400);
    expect(await settings()).not.toHaveProperty('refreshToken');
  });

  it('can be started again after the owner cancelled it', async () => {
    const link = await makeLink();
    const by = browser();
    const denied = await by.get(await decide(by, await start(by, link), 'Deny'));
    expect(denied).toMatchObject(saying(200, 'You did not agree'));
    expect((await finish(by, link)).text).toContain('Done.');
  });

  it('is answered 409 and changes nothing if the account is that of another restaurant', async () => {
    const link = await makeLink();
    square.oauth.signsInAsAnother = true;
    expect(await finish(browser(), link)).toMatchObject(saying(409, 'the account of another restaurant'));
    expect(await settings()).not.toHaveProperty('refreshToken');
    expect(await lastAction()).toMatchObject({ outcome: 'refused', after: 'other_account' });
    square.oauth.signsInAsAnother = false;
    expect((await finish(browser(), link)).status).toBe(200);
  });

  it('is answered 400 if the vendor refuses the code, and the link still works', async () => {
    const by = browser();
    const link = await makeLink();
    const callback = new URL(await callbackOf(by, link));
    callback.searchParams.set('code', 'sq0cgb-invented');
    expect((await by.get(callback.href)).status).toBe(400);
    expect(await lastAction()).toMatchObject({ outcome: 'refused', after: 'code_refused' });
    expect((await by.get(link)).status).toBe(200);
  });

  it('is answered 502 if the vendor is away, and the link still works', async () => {
    const by = browser();
    const link = await makeLink();
    const callback = await callbackOf(by, link);
    square.fail = (route) => (route === 'POST /oauth2/token' ? { status: 503 } : undefined);
    expect(await by.get(callback)).toMatchObject(saying(502, 'your link still works'));
    square.fail = undefined;
    expect((await finish(by, link)).text).toContain('Done.');
  });
});

describe('the page of a connect link', () => {
  it('sends an owner to the vendor only by its own form, in the browser that shows the page', async () => {
    const link = await makeLink();
    const by = browser();
    expect((await by.get(`${link}/start`)).status).toBe(404);
    for (const elsewhere of [{}, { 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
      expect((await press(by, link, 'start', elsewhere as typeof OWN_PAGE)).headers.has('refresh')).toBe(false);
    }
    // The form of another browser's page, which the sender of the link can open too.
    const [, state = ''] = /name="state" value="([^"]+)"/.exec((await browser().get(link)).text) ?? [];
    expect(await by.post(link, { state }, OWN_PAGE)).toMatchObject(saying(400, 'was not started here'));
    expect(await browser().post(link, {}, OWN_PAGE)).toMatchObject(saying(400, 'was not started here'));
    expect((await press(by, link, 'start', { ...OWN_PAGE })).headers.get('refresh')).toContain(square.url);
  });

  it("leads only to the vendor's own hosts, unless an integrator of all locations made the link", async () => {
    const some = await askOperator(stage.app, await nameToken(stage, 'some', ['integrator'], ['nord']));
    expect(await some.post('/locations/nord/connect-links')).toMatchObject(
      saying(409, `lead to ${square.url}, which is`),
    );
    const link = await makeLink();
    const by = browser();
    const callback = await callbackOf(by, link);
    const { baseUrl: _baseUrl, refreshToken: _refreshToken, ...atVendor } = square.settings;
    await stage.addLocation('nord', { ...atVendor, baseUrl: 'https://evil.example' }, 'square');
    expect(await press(by, link, 'start')).toMatchObject(saying(409, 'the settings of the restaurant are not right'));
    expect(await by.get(callback)).toMatchObject(saying(409, 'the settings of the restaurant are not right'));
    await stage.addLocation('nord', atVendor, 'square');
    expect((await some.post('/locations/nord/connect-links')).status).toBe(200);
  });
});

describe('granted access that its owner has not yet confirmed', () => {
  const waiting = (): Promise<unknown> => stage.query('SELECT FROM connect_links WHERE sealed IS NOT NULL');
  const tooLate = `UPDATE connect_links SET granted_at = now() - interval '11 minutes' WHERE sealed IS NOT NULL`;

  it('is used for nothing, and only the same browser can confirm the access, and only within ten minutes', async () => {
    const link = await makeLink();
    const [by, sender] = [browser(), browser()];
    await start(sender, link);
    await agree(by, link);
    // The sender of the link has a sign-in of their own.
    expect(locationOf(await sender.get(link), link)).toBe(CONFIRM);
    expect(await sender.get(CONFIRM)).toMatchObject(saying(409, 'Somebody has signed in'));
    expect(await press(sender, CONFIRM, 'yes')).toMatchObject({ status: 400 });
    expect(await press(by, CONFIRM, 'yes', { 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 400 });
    expect(await by.post(CONFIRM, { state: 'x', answer: 'yes' }, OWN_PAGE)).toMatchObject({ status: 400 });
    await stage.query(tooLate);
    expect(await press(by, CONFIRM, 'yes')).toMatchObject({ status: 404 });
    expect(await settings()).not.toHaveProperty('refreshToken');
    const { body } = await operator.post('/locations/nord/check');
    expect(body).toMatchObject({ state: 'failed' });
  });

  it('is revoked and deleted after ten minutes, and the link works again', async () => {
    const link = await makeLink();
    const by = browser();
    await agree(by, link);
    await endUnconfirmedGrants();
    expect([square.oauth.isWithdrawn, await waiting()]).toEqual([false, [{}]]);
    await stage.query(tooLate);
    square.fail = (route) => (route === 'POST /oauth2/revoke' ? { status: 503 } : undefined);
    await endUnconfirmedGrants();
    expect([square.oauth.isWithdrawn, await waiting()]).toEqual([false, [{}]]);
    square.fail = undefined;
    await endUnconfirmedGrants();
    expect([square.oauth.isWithdrawn, await waiting()]).toEqual([true, []]);
    expect((await finish(by, link)).text).toContain('Done.');
  });

  it('is revoked at once if the owner answers no', async () => {
    const link = await makeLink();
    const by = browser();
    square.oauth.signsInAsAnother = true;
    expect((await agree(by, link)).text).toContain('Another Diner');
    expect(await press(by, CONFIRM, 'no')).toMatchObject(saying(200, 'The restaurant is not connected'));
    expect(await lastAction()).toMatchObject({ outcome: 'refused', after: 'not_confirmed' });
    expect([[...square.oauth.withdrawn], await waiting()]).toEqual([[OTHER_MERCHANT], []]);
    await finish(by, link);
    expect([[...square.oauth.withdrawn], await waiting()]).toEqual([[OTHER_MERCHANT], []]);
  });

  it('is revoked when the location gets another link, unless another location has the same access', async () => {
    await stage.addLocation('shares', { ...square.settings, merchantId: MERCHANT }, 'square');
    await agree(browser(), await makeLink());
    await makeLink();
    await endUnconfirmedGrants();
    expect([square.oauth.isWithdrawn, await waiting()]).toEqual([false, []]);
    await stage.query(`DELETE FROM locations WHERE location_id = 'shares'`);
    const by = browser();
    await agree(by, await makeLink());
    await makeLink();
    expect((await press(by, CONFIRM, 'yes')).status).toBe(400);
    await endUnconfirmedGrants();
    expect([square.oauth.isWithdrawn, await waiting()]).toEqual([true, []]);
  });
});

describe('a location', () => {
  it('is not removed while it has unconfirmed access that is not yet revoked', async () => {
    await agree(browser(), await makeLink());
    const remove = (query: string): Promise<OperatorAnswer> => operator.send('DELETE', `/locations/nord${query}`);
    const waits = {
      status: 409,
      body: { detail: expect.stringMatching(/expediter provider disconnect nord/) as string },
    };
    for (const query of ['?unpaused=true&dryRun=true', '?unpaused=true'])
      expect(await remove(query)).toMatchObject(waits);
    await stage.query(`UPDATE connect_links SET expires_at = now() - interval '25 hours'`);
    expect((await remove('?unpaused=true&dryRun=true')).status).toBe(200);
    await stage.query('UPDATE connect_links SET expires_at = now()');
    await operator.post('/locations/nord/disconnect');
    await endUnconfirmedGrants();
    expect(square.oauth.isWithdrawn).toBe(true);
    expect((await remove('?unpaused=true')).status).toBe(200);
  });
});

describe('the pages for owners', () => {
  it('have headers against caches, frames, foreign scripts, search engines and the Referer', async () => {
    const { headers } = await browser().get(await makeLink());
    expect(headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('x-robots-tag')).toBe('noindex');
  });

  it('are shown even if the same source tried many wrong links', async () => {
    const from = fromElsewhere();
    const open = async (path: string, headers = {}): Promise<number> =>
      (await sendAsIs(stage.app, path, { headers: { ...from, ...headers } })).status;
    const { pathname } = new URL(await makeLink());
    const wrong = Array.from({ length: 60 }, (_, nth) => (nth % 2 === 0 ? `${pathname}x` : `/connect/x${nth}`));
    expect(new Set(await Promise.all(wrong.map((path) => open(path))))).toEqual(new Set([404]));
    expect(await open(pathname)).toBe(200);
    const headers = { authorization: `Bearer ${await nameToken(stage, 'new')}` };
    expect(await open('/v1/orders', headers)).toBe(200);
  });

  it('write no token, state or code into the log, the audit or the database', async () => {
    const by = browser();
    const link = await makeLink();
    const callback = new URL(await callbackOf(by, link));
    const unknown = await by.get(`${origin}/connect/${'x'.repeat(20)}`);
    expect(unknown.status).toBe(404);
    await by.get(callback.href);
    await press(by, CONFIRM, 'yes');
    const written = [
      ...stage.logged,
      JSON.stringify(await stage.query('SELECT * FROM audit LEFT JOIN audit_outcomes USING (audit_id)')),
      JSON.stringify(await stage.query('SELECT link_id, location_id, integration FROM connect_links')),
      JSON.stringify(await stage.query('SELECT location_id, settings FROM locations')),
    ].join('\n');
    const { searchParams } = callback;
    for (const secret of [
      link.split('/').at(-1),
      searchParams.get('state'),
      searchParams.get('code'),
      square.oauth.refreshToken,
      square.oauth.clientSecret,
      'x'.repeat(20),
    ]) {
      expect(secret).toBeTruthy();
      expect(written).not.toContain(secret);
    }
  });
});
