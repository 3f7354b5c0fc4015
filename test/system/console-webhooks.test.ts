import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { everything } from './in-page.ts';
import { says } from './on-page.ts';
import { askAxe } from './open-browser.ts';
import { useConsole } from './open-console.ts';
import { runShownCommand } from './run-shown-command.ts';

const secretOf = (byte: number): string => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const [RIGHT, WRONG] = [secretOf(1), secretOf(2)];
const REASON = 'Ada was not at home';

const pass = useConsole({}, { posSecret: RIGHT });

beforeAll(async () => {
  await pass.system.addLocation('club-1', { ordersUrl: pass.pos.ordersUrl, secret: WRONG });
  const webhook = await pass.system.webhookUrl('club-1');
  for (let i = 1; i <= 4; i += 1) {
    const serviceOrderId = `order-${i}`;
    await pass.system.seedOrder({ serviceOrderId, locationId: 'club-1' });
    await pass.pos.sendStatus(webhook, { serviceOrderId, status: 'RECEIVED', ...(i === 1 && { reason: REASON }) });
  }
});

const rowOf = (page: Page, nth: number) => page.getByRole('table').getByRole('row').nth(nth);
const resultsOn = (page: Page) => page.getByRole('region', { name: /^Replay: results/ });
const standing = (page: Page) => page.getByRole('region', { name: 'Why was this dropped?' });
const count = async (): Promise<number> => (await pass.system.query('SELECT FROM webhooks')).length;
const statusOf = async (id: string): Promise<unknown> => (await pass.system.order(id))?.['status'];

describe('the list of webhooks', () => {
  it('leads to the reason of a dropped webhook, with a command that fixes the cause', async () => {
    const { page, context } = await pass.open();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const dropped = page.getByRole('region', { name: /^Dropped webhooks 4/ });
    await dropped.getByRole('link', { name: /^club-1/ }).click();
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor();
    expect(new URL(page.url()).searchParams.get('outcome')).toBe('dropped');
    await rowOf(page, 4).waitFor();
    const columns = ['Received', 'Outcome', 'Location', 'Problem'];
    expect(await page.getByRole('columnheader').allTextContents(), 'without orders, which nobody read').toEqual(
      columns,
    );
    await rowOf(page, 4).getByRole('link').click();

    await standing(page).getByText("The signature does not match this location's secret.").waitFor();
    await page.getByText('It would be dropped again.').waitFor();
    const copy = page.getByRole('button', { name: /^Copy: the command: Or write only what changes/ });
    await copy.click();
    await page.getByText(/copied$/).waitFor({ state: 'attached' });
    const command = String(await page.evaluate('navigator.clipboard.readText()'));
    expect(command).toBe('expediter location change --settings - club-1 < settings.json');
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })"); // as by plain http
    await copy.click();
    await page.getByText('Not copied: select the text').waitFor();
    const settings = JSON.stringify({ secret: RIGHT });
    const ended = await runShownCommand(command, { env: pass.system.env, files: { 'settings.json': settings } });
    expect(ended).toMatchObject({ code: 0 });

    await page.reload();
    await standing(page).getByText('The cause is fixed.').waitFor();
    await page
      .getByRole('region', { name: 'What a replay would read' })
      .getByRole('link', { name: 'order-1' })
      .waitFor();
  });

  it('leads to a replay, which first shows what it would do', async () => {
    const { page } = await pass.open('/console/webhooks?outcome=dropped');
    await rowOf(page, 4).getByRole('link').click();
    await page.getByRole('button', { name: /^Replay/ }).click();
    const dialog = page.getByRole('dialog', { name: 'Replay this webhook' });
    await dialog.getByRole('row', { name: /order-1 received applied/ }).waitFor();
    expect(await statusOf('order-1')).toBe(null);

    await dialog.getByRole('button', { name: 'Replay the webhook' }).click();
    await dialog.getByText(/^The webhook was replayed/).waitFor();
    expect(await statusOf('order-1')).toBe('received');
    await dialog.getByRole('link', { name: 'order-1' }).click();
    await page.getByText('Member sees confirmed').waitFor();
    await page.getByRole('button', { name: /^Show all \d+ steps/ }).click();
    await page.getByText('The replay of a webhook updated the order').waitFor();
  });

  it('does not say "Nothing to replay" if the service cannot be reached', async () => {
    const { page } = await pass.open('/console/webhooks?outcome=dropped');
    await page.route('**/webhooks/replay', (route) => route.abort());
    await page.getByRole('button', { name: /^Replay all that match/ }).click();
    const run = page.getByRole('region', { name: /^Dry run/ });
    await run.getByText('The service cannot be reached.').waitFor();
    expect(await run.textContent()).not.toContain('Nothing to replay');
    expect(pass.complaints()).toHaveLength(1);
    await page.unroute('**/webhooks/replay');
    await run.getByRole('button', { name: 'Continue' }).click();
    await run.getByRole('row', { name: /received: K472 order-4/ }).waitFor();
  });

  it('replays all dropped webhooks together, except those already replayed', async () => {
    const { page } = await pass.open('/console/webhooks?outcome=dropped&location=club-1');
    await page.getByRole('button', { name: /^Replay all that match/ }).click();
    const run = page.getByRole('region', { name: /^Dry run/ });
    await run.getByRole('row', { name: /received: K472 order-4/ }).waitFor();
    expect(await run.getByRole('row').count()).toBe(1 + 3);
    expect(await run.getByRole('rowheader').first().textContent(), 'the time of the webhook').toMatch(
      /\d\d:\d\d:\d\d$/,
    );
    expect(await statusOf('order-4')).toBe(null);

    await run.getByRole('button', { name: /^Replay 3/ }).click();
    await resultsOn(page)
      .getByRole('row', { name: /received: K472 order-4/ })
      .waitFor();
    for (const id of ['order-2', 'order-3', 'order-4']) expect(await statusOf(id)).toBe('received');

    await page.getByRole('link', { name: 'Board' }).click();
    await page.getByRole('region', { name: /^Confirmed 4/ }).waitFor();
    await page.getByText('Nothing needs you.').waitFor();
  });

  it('replays dropped webhooks after an operator enters the right secret there, and asks before it stores a wrong one', async () => {
    await pass.system.addLocation('club-2', { ordersUrl: pass.pos.ordersUrl, secret: WRONG });
    await pass.system.seedOrder({ serviceOrderId: 'order-9', locationId: 'club-2' });
    const webhook = await pass.system.webhookUrl('club-2');
    const send = (): Promise<unknown> =>
      pass.pos.sendStatus(webhook, { serviceOrderId: 'order-9', status: 'RECEIVED' });
    for (let i = 1; i <= 10; i += 1) await send();
    const { page } = await pass.open();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('link', { name: /^club-2/ }).click();
    await page.getByText("The signature does not match this location's secret.").waitFor();
    const secret = page.getByLabel('Previous secret', { exact: true });
    await secret.fill(secretOf(3));
    await send();
    await page.getByRole('table').last().getByRole('row').nth(11).waitFor();
    expect(await secret.inputValue(), 'whatever comes meanwhile').toBe(secretOf(3));
    await page.getByRole('button', { name: 'Save' }).click();
    const question = page.getByRole('dialog', { name: 'Save these changes?' });
    await question.getByText('would be dropped again').waitFor();
    await question.getByRole('button', { name: 'Back' }).click();
    await secret.fill(RIGHT);
    await page.getByRole('button', { name: 'Save' }).click();
    const run = page.getByRole('region', { name: /^Dry run/ });
    await run.getByText('at club-2').waitFor();
    expect(await run.getByRole('listitem').allTextContents()).toEqual(['11 would be applied', 'at club-2']);
    await page.getByText('The cause is fixed. Replay them now.').waitFor();
    expect(await run.locator('.badge.good, td:has-text("club-2")').count()).toBe(0);
    const replay = run.getByRole('button', { name: 'Replay 11' });
    await run.locator('button:focus', { hasText: 'Replay 11' }).waitFor();
    const top = async (it: Locator): Promise<number> => (await it.boundingBox())?.y ?? NaN;
    expect(await top(replay)).toBeLessThan(await top(run.getByRole('table')));
    expect(await statusOf('order-9')).toBe(null);
    expect(await askAxe(page)).toEqual([]);
    await replay.click();
    const results = resultsOn(page);
    await results.getByRole('button', { name: 'Show all 11' }).click();
    await results.getByRole('row').nth(11).waitFor();
    const box = "document.querySelector('.webhooks-scroll')";
    expect(await page.evaluate(`${box}.scrollHeight > ${box}.clientHeight`)).toBe(false);
    await page.getByText(/^The cause is fixed\. The newest webhook was replayed: duplicate\./).waitFor();
    const list = page.getByRole('table').last();
    expect(await list.getByText(/replayed: (applied|duplicate)/).count()).toBe(11);
    expect(await list.getByText(/signature|^dropped$/).count()).toBe(0);
    expect(await statusOf('order-9')).toBe('received');
    await page.goto('/console/locations/club-2');
    await says(page, /^all replayed \d+:\d\d/);
    expect(await page.locator('.locations-figure :is(.bad, .warn)').count()).toBe(0);
  });

  it('replays only the chosen webhooks', async () => {
    const { page } = await pass.open('/console/webhooks?outcome=applied');
    await rowOf(page, 3).waitFor();
    expect(await askAxe(page)).toEqual([]);
    for (const nth of [1, 3]) await rowOf(page, nth).getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Replay 2 …' }).click();
    const run = page.getByRole('region', { name: /^Dry run/ });
    await run.getByRole('row').nth(2).waitFor();
    expect(await run.getByRole('row').count()).toBe(1 + 2);
    const before = await count();
    await run.getByRole('button', { name: 'Replay 2' }).click();
    await resultsOn(page).getByRole('row').nth(2).waitFor();
    expect(await count()).toBe(before + 2);
  });

  it('shows new webhooks without moving the row that somebody reads', async () => {
    const { page } = await pass.open('/console/webhooks');
    await rowOf(page, 1).getByRole('checkbox').check();
    const read = await rowOf(page, 1).textContent();
    await pass.pos.sendStatus(await pass.system.webhookUrl('club-1'), {
      serviceOrderId: 'order-1',
      status: 'IN_PROGRESS',
    });
    await page.getByRole('button', { name: 'Show 1 new' }).waitFor();
    expect((await rowOf(page, 1).textContent())?.slice(0, 8)).toBe(read?.slice(0, 8));
    await page.getByRole('button', { name: 'Show 1 new' }).click();
    await rowOf(page, 1).getByText('applied').waitFor();
    expect(await rowOf(page, 2).getByRole('checkbox').isChecked()).toBe(true);
  });
});

describe('the body of a webhook', () => {
  it('is neither on the page nor in its requests until it is revealed', async () => {
    const { page, answers } = await pass.open('/console/webhooks?outcome=dropped&location=club-1');
    await rowOf(page, 4).getByRole('link').click();
    await page.getByText(/^Solved\. Its replay/).waitFor();
    for (const text of [await page.evaluate(everything), (await answers()).join('')]) {
      expect(text).not.toContain(REASON);
      expect(text).not.toContain('webhook-signature":');
    }
    const reads = (): number => pass.system.logged.filter((line) => line.includes('"action":"read webhook"')).length;
    const before = reads();

    await page.getByRole('button', { name: 'Reveal headers and body' }).click();
    await page.getByRole('region', { name: 'Body' }).getByText(REASON).waitFor();
    await page.getByRole('region', { name: 'Headers' }).getByText('webhook-signature').waitFor();
    expect(reads()).toBe(before + 1);
    await page.getByRole('button', { name: 'As received' }).click();
    await page.getByText(`"reason":"${REASON}"`).waitFor();
  });

  it('is shown only in part if it is large', async () => {
    const body = JSON.stringify({ quoted: Array.from({ length: 60_000 }, () => 'a word') });
    await fetch(await pass.system.webhookUrl('club-1'), { method: 'POST', body });
    const { page } = await pass.open('/console/webhooks?outcome=dropped');
    await page.getByRole('button', { name: /^Replay all that match/ }).click();
    const run = page.getByRole('region', { name: /^Dry run/ });
    await run.getByRole('row', { name: /Not signed/ }).waitFor();
    await page.getByRole('table').last().getByRole('row').nth(1).getByRole('link').click();
    await page.getByRole('button', { name: 'Reveal headers and body' }).click();
    const shown = page.getByRole('region', { name: 'Body', exact: true });
    await shown.getByText('Only the beginning is shown').waitFor();
    expect((await shown.textContent())?.length).toBeLessThan(body.length);
  });
});
