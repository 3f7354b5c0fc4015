import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runDemo } from '../process/demo/run-demo.ts';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';
import { until } from '../../world/processes/until.ts';
import { openBrowser, openPage } from './open-browser.ts';

/** As long as the slowest kitchen takes for two of them. */
const TWO_STEPS_MS = 40_000;

let browser: Browser;
let dir: string;
beforeAll(async () => {
  browser = await openBrowser();
  dir = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'expediter-demo-'));
  chmodSync(dir, 0o755);
});
afterAll(async () => {
  await browser?.close();
  rmSync(dir, { recursive: true, force: true });
});

it('npm run demo shows a guest the steps of their order, and drops the webhooks of one location', async () => {
  const { child, code, stdout, stderr, leftBehind } = runDemo(['--dir', dir], { dir });
  try {
    const shown = (name: string): string | undefined => new RegExp(`${name}: +(http\\S+)`).exec(stdout())?.[1];
    const url = await until(() => shown('A guest sees'), 60_000);
    const service = new URL(shown('The service') ?? '').origin;
    const { page, complaints } = await openPage(browser, { url: new URL(url).origin, asks: service });
    await page.goto(url);
    await page.getByText('Live: this page follows your order.').waitFor();
    await page.getByRole('heading', { level: 1, name: 'Being prepared' }).waitFor({ timeout: TWO_STEPS_MS });
    await until(() => readFileSync(join(dir, 'service.log'), 'utf8').includes('"outcome":"dropped"'), TWO_STEPS_MS);
    expect(complaints).toEqual([]);
    expect(stderr()).toBe('');
  } finally {
    child.kill('SIGTERM');
    await code;
  }
  expect(await code).toBe(0);
  expect(leftBehind()).toEqual([]);
});
