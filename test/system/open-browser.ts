import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import { runAxe, tellDialogs, tellViolations } from './in-page.ts';
import { needsChromium } from './needs-chromium.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A browser leaves alone what is not the page. */
const ARGUMENTS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** Long enough for a busy machine, short enough that a mistake says where it is. */
const WAIT_MS = 10_000;

/** One page in a profile of its own, and all that should not have happened there. */
export type Opened = {
  page: Page;
  context: BrowserContext;
  /**
   * What should not happen: a dialog from a button without “…”, errors on the console, what the content security policy keeps out, requests that failed or
   * were refused, and requests to anybody else.
   */
  complaints: string[];
  /** The text of every answer to the page so far, streams excepted. */
  answers(): Promise<string[]>;
};

/** @throws when there is no Chromium */
export function openBrowser(): Promise<Browser> {
  const isRoot = process.getuid?.() === 0;
  return chromium.launch({
    executablePath: needsChromium(),
    args: [...ARGUMENTS, ...(isRoot ? ['--no-sandbox'] : [])],
  });
}

/**
 * @param about.url where the page comes from, without a path
 * @param about.asks whom else it may ask
 * @param about.token of an operator, who is logged in with it
 */
export async function openPage(
  browser: Browser,
  about: BrowserContextOptions & { url: string; asks?: string | readonly string[]; token?: string },
): Promise<Opened> {
  const { url, asks = [], token, ...options } = about;
  const context = await browser.newContext({ baseURL: url, locale: 'en-GB', timezoneId: inTheEvening(), ...options });
  context.setDefaultTimeout(WAIT_MS);
  if (token !== undefined) {
    const answer = await context.request.post('/console/session', { data: { token }, headers: { origin: url } });
    if (answer.status() !== 204) throw new Error(`the login was answered ${answer.status()}: ${await answer.text()}`);
  }

  const complaints: string[] = [];
  const answers: Promise<string>[] = [];
  await context.exposeFunction('tellTest', (complaint: string) => void complaints.push(complaint));
  await context.addInitScript(tellViolations);
  await context.addInitScript(tellDialogs);
  context.on('request', (request) => {
    if (![url, ...[asks].flat()].includes(new URL(request.url()).origin))
      complaints.push(`elsewhere: ${request.method()} ${request.url()}`);
  });
  context.on('requestfailed', (request) => {
    const { errorText = '' } = request.failure() ?? {};
    // Given up by the page itself, as when it goes to another.
    if (errorText !== 'net::ERR_ABORTED') complaints.push(`failed: ${request.url()} ${errorText}`);
  });
  context.on('response', (response) => {
    const type = response.headers()['content-type'] ?? '';
    if (response.status() >= 400) complaints.push(`${response.status()}: ${new URL(response.url()).pathname}`);
    if (!type.startsWith('text/event-stream')) answers.push(response.text().catch(() => ''));
  });
  context.on('console', (message) => {
    // What was refused is told above, with its status.
    if (message.text().startsWith('Failed to load resource')) return;
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(`console: ${message.text()}`);
  });
  context.on('weberror', (error) => void complaints.push(`error: ${error.error().message}`));
  return { context, page: await context.newPage(), complaints, answers: () => Promise.all(answers) };
}

/**
 * What axe-core has against the page as it is; empty when nothing.
 * @param about.colours ask about nothing else, where only they may have changed
 */
export async function askAxe(page: Page, about: { colours?: boolean } = {}): Promise<string[]> {
  if (!(await page.evaluate('typeof axe === "object"'))) await page.evaluate(AXE);
  return page.evaluate(runAxe, about.colours ? ['color-contrast', 'link-in-text-block'] : undefined);
}

/** Where it is eight in the evening now: no test's day ends while it runs. */
function inTheEvening(): string {
  const until = 20 - new Date().getUTCHours();
  const ahead = until > 14 ? until - 24 : until;
  // Of these names, the sign is the other way round.
  return `Etc/GMT${ahead <= 0 ? '+' : '-'}${Math.abs(ahead)}`;
}
