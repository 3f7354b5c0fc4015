import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { secureHeaders } from '../../src/http/console/page-files.ts';
import { serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { longTasks, sticksOut, watchLongTasks } from './in-page.ts';
import { needsChromium } from './needs-chromium.ts';
import { askAxe, openBrowser, openPage, type Opened } from './open-browser.ts';

const PAGE = `<!doctype html><html lang="en"><title>A page</title><main><h1>A page</h1></main></html>`;

let browser: Browser;
let server: HttpServer;

beforeAll(async () => {
  browser = await openBrowser();
  server = await serveHttp((request, response) => {
    const status = request.url === '/' ? 200 : 404;
    response.writeHead(status, { 'content-type': 'text/html', ...secureHeaders }).end(status === 200 ? PAGE : '');
  });
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

async function open(): Promise<Opened> {
  const opened = await openPage(browser, { url: server.url, viewport: { width: 360, height: 700 } });
  await opened.page.goto('/');
  return opened;
}

describe('a watched page', () => {
  it('without a fault has no complaint', async () => {
    const { page, complaints } = await open();
    expect([await askAxe(page), await page.evaluate(sticksOut), complaints]).toEqual([[], [], []]);
  });

  it.each([
    [
      'an inline script',
      "document.body.append(Object.assign(document.createElement('script'), { text: '1' }))",
      /^policy: /,
    ],
    ['an inline style', "document.body.setAttribute('style', 'color: red')", /^policy: style-src/],
    ['markup from a text', "document.body.innerHTML = '<p>'", /^policy: require-trusted-types-for/],
    ['a request to another host', "void fetch('http://127.0.0.1:9/').catch(() => {})", /^policy: connect-src/],
    ['a refused request', "fetch('/none')", /^404: \/none$/],
    ['an error on the console', "console.error('something')", /^console: something$/],
    ['an uncaught error', "void setTimeout(() => { throw new Error('oops') })", /^error: oops$/],
  ])('has a complaint about %s', async (_what, script, complaint) => {
    const { page, complaints } = await open();
    await page.evaluate(script).catch(() => {});
    await vi.waitFor(() => expect(complaints).toContainEqual(expect.stringMatching(complaint)));
  });

  it('has a complaint about an input without a label', async () => {
    const { page } = await open();
    await page.evaluate("document.querySelector('main').append(document.createElement('input'))");
    expect((await askAxe(page)).join()).toMatch(/^label: /);
  });

  it('has a complaint about a heading that is wider than the screen', async () => {
    const { page } = await open();
    await page.evaluate("document.querySelector('h1').style.width = '500px'");
    expect(await page.evaluate(sticksOut)).toContain('H1 A page');
  });

  it('has a complaint about a script that blocks it for 120 ms', async () => {
    const { page } = await open();
    await page.evaluate(watchLongTasks);
    await page.evaluate(
      'void setTimeout(() => { const end = performance.now() + 120; while (performance.now() < end); })',
    );
    await vi.waitFor(async () => expect(Math.max(...(await page.evaluate(longTasks)))).toBeGreaterThanOrEqual(100));
  });
});

describe('without Chromium', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('the tests fail, and name what to install', () => {
    vi.stubEnv('CHROMIUM', '');
    vi.stubEnv('PATH', '/nowhere');
    expect(() => needsChromium()).toThrow('chromium is missing; on Debian: apt-get install chromium');
  });

  it('the tests fail if CHROMIUM names no file', () => {
    vi.stubEnv('CHROMIUM', '/nowhere/chromium');
    expect(() => needsChromium()).toThrow('CHROMIUM names "/nowhere/chromium", and there is no such file');
  });
});
