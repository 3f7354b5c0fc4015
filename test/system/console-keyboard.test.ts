import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { until } from '../../world/processes/until.ts';
import { focused, isFocusBeside, isFocusIn } from './in-page.ts';
import { seesLink } from './on-page.ts';
import { useConsole } from './open-console.ts';

/** Far more than any page has on the way to what is wanted. */
const STOPS = 40;

const pass = useConsole({}, { refused: /^401: \/console\/session$/ });
beforeAll(() => pass.system.addLocation('club-1', { ordersUrl: pass.pos.ordersUrl }));

/** Presses Tab until the focus is there, unless it is already; it has to be seen at every stop. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  const stops: string[] = [];
  for (let i = 0; i < STOPS; i += 1) {
    const stop = await page.evaluate(focused);
    stops.push(stop.name);
    expect(i === 0 || stop.name === '' || stop.isVisible, `the focus is seen on ${stop.name}`).toBe(true);
    if (name.test(stop.name)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${name} is not come to with Tab, only ${stops.join(' | ')}`);
}
const focusIs = (page: Page, name: RegExp): Promise<unknown> =>
  until(async () => name.test((await page.evaluate(focused)).name));

it('a held order is found and retried without a mouse', async () => {
  pass.pos.behave = () => ({ status: 404 });
  await pass.system.placeOrder({ serviceOrderId: 'order-first' });
  await pass.system.placeOrder({ serviceOrderId: 'order-second' });
  for (const id of ['order-first', 'order-second']) {
    await until(async () => (await pass.system.placement(id))?.['state'] === 'held');
  }
  const { page } = await pass.openLoggedOut();
  await page.getByLabel('Operator token').waitFor();
  await tabTo(page, /^Operator token/);
  await page.keyboard.type(OPERATOR_TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Board' }).waitFor();
  await seesLink(page, /order-second/);
  await page.reload();
  await seesLink(page, /order-second/);

  await tabTo(page, /^Skip to the page/);
  await page.keyboard.press('Enter');
  await until(() => page.evaluate(isFocusIn, 'main'));
  await tabTo(page, /order-(first|second).*held: .*Classic Burger|order-(first|second).*held: .*items/);
  const one = (await page.evaluate(focused)).name.includes('order-first') ? 'first' : 'second';
  const other = one === 'first' ? 'second' : 'first';
  await page.keyboard.press('ArrowDown');
  await focusIs(page, new RegExp(`order-${other}`));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: `Order order-${other}` }).waitFor();
  await focusIs(page, new RegExp(`^Order order-${other}`));

  await tabTo(page, /^Retry now …$/);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: /^Retry .*, club-1\?$/ }).waitFor();
  for (let i = 0; i < 4; i += 1) {
    expect(await page.evaluate(isFocusBeside, 'dialog'), 'nothing behind the dialog gets the focus').toBe(false);
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(pass.pos.tickets).toHaveLength(0);
  expect(await page.evaluate(isFocusIn, '[aria-label="Current state"]'), 'the focus is back where it was').toBe(true);

  pass.pos.behave = undefined;
  await tabTo(page, /^Retry now …$/);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await tabTo(page, /^Retry now$/);
  await page.keyboard.press('Enter');
  await page.getByText('The ticket is at the POS').waitFor();
});
