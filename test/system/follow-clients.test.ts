import { setTimeout as sleep } from 'node:timers/promises';
import { rolldown } from 'rolldown';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FOLLOW_ENV, memberToken } from '../../world/members/member-token.ts';
import { serveHttp } from '../../world/network/serve-http.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { openBrowser } from './open-browser.ts';

const CLIENTS = ['EventSource', 'eventsource', 'event-source-polyfill', 'sse.js', 'fetch-event-source', 'our own'];
/** A client that goes on would ask again within this time. */
const AGAIN_MS = 8_000;

let system: System;
let pos: Pos;
let browser: Browser;
let shop: Awaited<ReturnType<typeof serveHttp>>;

beforeAll(async () => {
  const bundle = await rolldown({ input: new URL('follow-clients.ts', import.meta.url).pathname, platform: 'browser' });
  const { output } = await bundle.generate({ format: 'iife' });
  await bundle.close();
  // The page is of another origin than the service.
  shop = await serveHttp((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><script>${output[0].code}</script>`);
  });
  [pos, browser] = await Promise.all([startPos(), openBrowser()]);
  system = await startSystem({ env: { ...FOLLOW_ENV, MEMBER_ORIGINS: shop.url } });
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
});
afterAll(async () => {
  await browser?.close();
  await Promise.all([system?.stop(), pos?.stop(), shop?.stop()]);
});

it.each(CLIENTS)('a page that follows with %s sees each step and the end, and then asks no more', async (client) => {
  const { serviceOrderId } = await system.placeOrder({ locationId: 'club-1' });
  await until(() => system.live(serviceOrderId).length === 2);
  const page = await browser.newPage();
  await page.goto(shop.url);
  const said: string[] = [];
  let asked = 0;
  page.on('request', (request) => {
    if (request.url().startsWith(`${system.urls[0]}/follow`)) asked += 1;
  });
  await page.exposeFunction('told', (memberState: string) => void said.push(memberState));
  await page.exposeFunction('ended', () => void said.push('end'));
  const about = JSON.stringify({ url: `${system.urls[0]}/follow`, token: await memberToken(serviceOrderId) });
  await page.evaluate(`CLIENTS[${JSON.stringify(client)}]({ ...${about}, told, ended })`);
  const webhook = await system.webhookUrl('club-1');
  for (const [status, memberState] of [
    ['RECEIVED', 'confirmed'],
    ['IN_PROGRESS', 'preparing'],
    ['COMPLETED', 'picked_up'],
  ] as const) {
    await until(() => said.length > 0);
    await pos.sendStatus(webhook, { serviceOrderId, status: status.toLowerCase() });
    await until(() => said.includes(memberState));
  }
  await until(() => said.includes('end'));
  expect(said).toEqual(['sent', 'confirmed', 'preparing', 'picked_up', 'end']);
  const before = asked;
  await sleep(AGAIN_MS);
  expect(asked).toBe(before);
  await page.close();
});
