import type { Locator, Page } from 'playwright-core';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { blind } from '../../world/pos/pos-without-deduplication.ts';
import { FOLLOW_ENV, memberToken } from '../../world/members/member-token.ts';
import { readEvents } from '../support/read-events.ts';
import { aMinuteLater } from '../support/resolve-a-minute-later.ts';
import { until } from '../../world/processes/until.ts';
import type { Opened } from './open-browser.ts';
import { everything } from './in-page.ts';
import { isLive, press, says } from './on-page.ts';
import { useConsole } from './open-console.ts';

const pass = useConsole({ providers: [blind], env: FOLLOW_ENV });

beforeAll(async () => {
  await pass.system.addLocation('club-1', { ordersUrl: pass.pos.ordersUrl, cancelUrl: pass.pos.cancelUrl });
  await pass.system.addLocation('bar-1', { ordersUrl: pass.pos.ordersUrl }, 'blind');
});
afterEach(() => void (pass.pos.behave = undefined));

const reaches = (serviceOrderId: string, state: string): Promise<unknown> =>
  until(async () => (await pass.system.placement(serviceOrderId))?.['state'] === state);
/** The page of an order that has come to a state. */
async function openOrder(state: string, about: Partial<CanonicalOrder> = {}): Promise<Opened & { id: string }> {
  const { serviceOrderId: id } = await pass.system.placeOrder(about);
  await reaches(id, state);
  return { ...(await pass.open(`/console/orders/${id}`)), id };
}
const standing = (page: Page): Locator => page.getByRole('region', { name: 'Current state' });
const ticketsOf = (serviceOrderId: string): number =>
  pass.pos.tickets.filter((ticket) => ticket.serviceOrderId === serviceOrderId).length;

describe('a held order', () => {
  it('is placed by a retry after its cause is fixed, and its page updates', async () => {
    pass.pos.behave = () => ({ status: 404 });
    const { page, id } = await openOrder('held');
    await standing(page).getByText('The POS has nothing at this address: check “Orders URL”').waitFor();

    await page.getByRole('button', { name: 'Retry now' }).click();
    const dialog = page.getByRole('dialog', { name: /^Retry \w+, club-1\?$/ });
    await dialog.getByText(/it is held again/).waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(pass.pos.requests).toBe(1);

    pass.pos.behave = undefined;
    await page.getByRole('button', { name: 'Retry now' }).click();
    await dialog.getByRole('button', { name: 'Retry now' }).click();
    await says(page, 'The ticket is at the POS');
    expect(ticketsOf(id)).toBe(1);
    expect(pass.system.logged.join('')).toContain('"action":"retry"');
  });
});

it('the search says what became of an order, not that it was once sent', async () => {
  const { serviceOrderId } = await pass.system.placeOrder({ locationId: 'club-1' });
  await reaches(serviceOrderId, 'sent');
  const [row] = await pass.system.query(
    `UPDATE orders SET rank = 60 WHERE service_order_id = $1 RETURNING call_out_code`,
    [serviceOrderId],
  );
  const { page } = await pass.open();
  await isLive(page);
  await page.keyboard.press('Control+k');
  const dialog = page.getByRole('dialog', { name: 'Search' });
  await dialog.getByRole('searchbox').fill(String(row?.['call_out_code']));
  await dialog
    .getByRole('listitem')
    .filter({ hasText: /picked up|delivered/ })
    .waitFor();
  expect(await dialog.getByText('sent', { exact: true }).count()).toBe(0);
});

describe('orders that are held by wrong settings', () => {
  it('are sent after an operator corrects the wrong setting on the page of the order', async () => {
    const wrong = pass.pos.ordersUrl.replace(/\/orders$/, '/none');
    await pass.system.addLocation('mill-1', { ordersUrl: wrong });
    const contacts = JSON.stringify([
      { name: 'Owner', email: 'o@example.com' },
      { name: 'Kitchen', phone: '+4940123' },
    ]);
    await pass.system.query("UPDATE locations SET contacts = $1 WHERE location_id = 'mill-1'", [contacts]);
    const place = async () => (await pass.system.placeOrder({ locationId: 'mill-1' })).serviceOrderId;
    const ids = [await place(), await place()];
    for (const id of ids) await reaches(id, 'held');
    const { page } = await pass.open('/console/locations/mill-1');
    await says(page, /^2 orders did not reach the POS: /);
    expect(await page.getByText('taking orders').count()).toBe(0);
    await page.goto('/console/');
    await page.getByRole('link', { name: /mill-1.*2 orders/ }).click();
    const url = page.getByLabel('Orders URL');
    await url.waitFor();
    expect([await url.inputValue(), await page.getByLabel('Cancel URL').count()]).toEqual(['', 0]);
    await says(page, `Stored: ${new URL(wrong).origin}/…`);
    const call = page.getByRole('link', { name: 'Call +4940123' });
    expect(await call.getAttribute('href')).toBe('tel:+4940123');
    await url.fill(pass.pos.ordersUrl);
    await pass.system.query("UPDATE locations SET country = 'FR' WHERE location_id = 'mill-1'");
    await page.getByRole('button', { name: 'Save' }).click();
    await says(page, /^Somebody changed this location meanwhile. Nothing of yours was saved/);
    expect(pass.complaints()).toEqual([expect.stringMatching(/^412: /)]);
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByRole('button', { name: 'Reload' }).waitFor({ state: 'detached' });
    expect(await url.inputValue()).toBe(pass.pos.ordersUrl);
    await page.getByRole('button', { name: 'Save' }).click();
    const question = page.getByRole('dialog', { name: 'Save these changes?' });
    await says(question, /Orders URL leads to another path of http\S+ than before\. Is that right\?/);
    const sent = page.waitForRequest((request) => request.method() === 'PATCH');
    await question.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toEqual({ settings: { ordersUrl: pass.pos.ordersUrl } });
    for (const id of ids) await reaches(id, 'sent');
    await says(page, '2 orders were sent.');

    pass.pos.behave = () => ({ status: 404 });
    const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
    await pass.system.addLocation('mill-2', { ordersUrl: wrong, secret });
    const { serviceOrderId: signed } = await pass.system.placeOrder({ locationId: 'mill-2' });
    await reaches(signed, 'held');
    await page.goto(`/console/orders/${signed}`);
    await url.fill('https://elsewhere.example.com/orders');
    expect(await page.getByLabel('Secret', { exact: true }).count()).toBe(0);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByLabel('Secret', { exact: true }).fill(secret);
    await page.getByRole('button', { name: 'Save' }).click();
    await says(question, /leads elsewhere than before: to https:\/\/elsewhere\.example\.com instead of/);
    expect(new Set(pass.complaints())).toEqual(new Set(['400: /console/api/locations/mill-2']));
    await question.getByRole('button', { name: 'Back' }).click();
    expect(await page.getByLabel('Secret', { exact: true }).inputValue()).toBe(secret);

    const alone = await place();
    await reaches(alone, 'held');
    await page.goto(`/console/orders/${alone}`);
    await url.waitFor();
    const others = page.getByText('Other orders of this location have reached its POS since then.');
    expect(await others.count()).toBe(0);
    pass.pos.behave = ({ order }) => (order.serviceOrderId === alone ? { status: 404 } : undefined);
    await reaches(await place(), 'sent');
    await pass.system.query("UPDATE placements SET signalled_at = signalled_at - '1h'::interval WHERE state = 'sent'");
    await page.reload();
    await others.waitFor();
  });
});

describe('an order that the POS refused', () => {
  it('shows the reason of the POS after an operator reveals it', async () => {
    pass.pos.behave = () => ({ status: 422, body: { reason: 'The kitchen closes at eight.' } });
    const { page, answers } = await openOrder('failed');
    const button = page.getByRole('button', { name: 'Reveal the reason' });
    await button.waitFor();
    expect((await answers()).join('')).not.toContain('closes at eight');
    await button.click();
    await says(page, 'failed: “The kitchen closes at eight.”');
  });
});

describe('an order in doubt', () => {
  async function inDoubt(): Promise<{ page: Page; serviceOrderId: string }> {
    pass.pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : undefined);
    const { page, id: serviceOrderId } = await openOrder('in_doubt', { locationId: 'bar-1' });
    await standing(page)
      .getByText(/^Is [A-Z]\d+ at the POS\?$/)
      .waitFor();
    return { page, serviceOrderId };
  }

  it('gets no second ticket after a person answers that it is at the POS', async () => {
    const { page, serviceOrderId } = await inDoubt();
    // First whom to ask, then the answers. Neither looks like the right one.
    await standing(page).locator('.orders-call').waitFor();
    const order = await standing(page).locator('.orders-call, button').allTextContents();
    expect(order.slice(-3)).toEqual(['It is there …', 'It is not there …', 'Cancel the order …']);
    expect(order[0]).toMatch(/telephone|\+49/);
    expect(await standing(page).locator('.primary').count()).toBe(0);
    expect(await standing(page).textContent()).toMatch(/for a ticket from [^,]+ on\. The POS may show/);
    await pass.system.query(`UPDATE locations SET time_zone = 'Asia/Kathmandu' WHERE location_id = 'bar-1'`);
    await page.reload();
    await says(page, /, which is \d\d:\d\d there\./);
    await page.getByRole('button', { name: 'It is there' }).click();
    await says(page, /If you are wrong, nobody cooks it/);
    await page.getByLabel('Its id at the POS').fill('8F2K');
    await page.getByRole('dialog').getByRole('button', { name: 'It is there' }).click();
    await reaches(serviceOrderId, 'sent');
    await says(page, 'The ticket is at the POS');
    await says(page, '8F2K');
    expect(ticketsOf(serviceOrderId)).toBe(1);
  });

  it('is sent again after a person answers that it is not at the POS', async () => {
    const { page, serviceOrderId } = await inDoubt();
    await page.getByRole('button', { name: 'It is not there' }).click();
    await says(page, /second ticket/);
    await page.getByRole('dialog').getByRole('button', { name: 'It is not there' }).click();
    await says(page, /Look at the POS again in \d+ seconds/);
    expect(pass.complaints()).toEqual([expect.stringMatching(/^409: .*\/resolve$/)]);
    await aMinuteLater(pass.system.pool, serviceOrderId);
    await page.getByRole('dialog').getByRole('button', { name: 'It is not there' }).click();
    await reaches(serviceOrderId, 'sent');
    await says(page, 'The ticket is at the POS');
    expect(ticketsOf(serviceOrderId)).toBe(2);
  });
});

describe('an order with a cancellation', () => {
  it('is cancelled at its POS after an operator confirms it', async () => {
    const { page, id } = await openOrder('sent');
    await page.getByRole('button', { name: 'Cancel at the POS' }).click();
    const dialog = page.getByRole('dialog', { name: /^Cancel \w+, club-1\?$/ });
    await dialog.getByText(/once the POS confirms it/).waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Cancel at the POS' }).click();
    await dialog.getByRole('button', { name: 'Cancel at the POS' }).click();
    await says(page, 'Shared operator token cancelled the order');
    await says(page, 'Member sees cancelled');
    expect(pass.pos.tickets.find((each) => each.serviceOrderId === id)?.cancelled).toEqual({});
    expect(pass.system.logged.join('')).toContain('"action":"cancel"');
  });

  it('is said to need a telephone call before it is requested, if the POS cannot cancel', async () => {
    const { page } = await openOrder('sent', { locationId: 'bar-1' });
    await press(page, 'Cancel at the POS …');
    const dialog = page.getByRole('dialog');
    await says(dialog, /cannot be asked to cancel it: nothing is sent there/);
    await press(dialog, 'Cancel at the POS');
    await says(standing(page), /by phone: bar-1$/);
    await says(page, 'What did the restaurant say?');
    await press(page, 'It did not cancel it …');
    await press(dialog, 'It did not cancel it');
    await says(standing(page), 'The order was not cancelled');
    expect(await page.getByText('What did the restaurant say?').count()).toBe(0);
  });

  it.each([
    ['It cancelled the order', 'Member sees cancelled'],
    ['It did not cancel it', 'The order was not cancelled'],
  ])('by phone is on the board until an operator enters the answer of the restaurant: %s', async (said, then) => {
    const { serviceOrderId } = await pass.system.placeOrder({ locationId: 'bar-1' });
    await reaches(serviceOrderId, 'sent');
    await pass.system.query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at)
       VALUES ($1, 'bar-1', 'platform', 'by_phone', now(), 'infinity')`,
      [serviceOrderId],
    );
    await pass.system.query(`UPDATE orders SET cancellation = 'requested' WHERE service_order_id = $1`, [
      serviceOrderId,
    ]);
    await pass.system.query(
      `UPDATE locations SET contacts = '[{"email":"ada@nord.example"},{"phone":"+4930123456"}]' WHERE location_id = 'bar-1'`,
    );
    const { page } = await pass.open('/console/orders?needs=operator');
    await says(page, 'sent: cancel by phone');
    await page.goto('/console/');
    const needs = page.getByRole('list', { name: /^Cancel by phone/ });
    const call = needs.locator('button + a', { hasText: 'Call the restaurant: +4930123456' });
    expect(await call.first().getAttribute('href')).toBe('tel:+4930123456');
    await needs.getByRole('link', { name: /bar-1/ }).first().click();
    await standing(page)
      .getByText(/^Cancel [A-Z]\d+ by phone: bar-1$/)
      .waitFor();
    await says(page, 'Cancellation requested by the member');
    await page.getByRole('button', { name: said }).click();
    await page.getByRole('dialog').getByRole('button', { name: said }).click();
    await says(page, then);
    await until(async () => {
      const [row] = await pass.system.query('SELECT state FROM cancellations WHERE service_order_id = $1', [
        serviceOrderId,
      ]);
      return row?.['state'] !== 'by_phone';
    });
  });
});

it('a test order is marked, and no member is shown', async () => {
  pass.pos.behave = () => ({ status: 422 });
  const { page } = await pass.open('/console/locations/club-1');
  await press(page, 'Place a test order …');
  const dialog = page.getByRole('dialog');
  await press(dialog, 'Place the test order');
  await says(dialog, 'What to do:');
  await page.goto(`${new URL(page.url()).origin}/console/orders`);
  const row = page.getByRole('row').filter({ hasText: 'Test order' });
  await row.getByRole('link').first().click();
  await says(page, 'An operator placed the test order');
  await says(page, 'The test order failed');
  await says(page, 'This is a test order: it has no member.');
  expect(await page.getByText(/Member (sees|notified)|The member was/).count()).toBe(0);
});

describe("an order's timeline", () => {
  it('shows each status that the kitchen reports', async () => {
    const { page, id: serviceOrderId } = await openOrder('sent');
    const story = page.getByRole('region', { name: 'Timeline' });
    await story.getByText('The platform signalled the order').waitFor();
    // How we did it is folded away until somebody asks.
    expect(await story.getByText('The POS has the order').count()).toBe(0);
    await story.getByRole('button', { name: /^Show all \d+ steps/ }).click();
    await story.getByText('The POS has the order').waitFor();
    await story.getByRole('button', { name: 'Show fewer steps' }).click();
    const webhook = await pass.system.webhookUrl('club-1');
    for (const [status, told] of [
      ['IN_PROGRESS', 'preparing'],
      ['READY', 'ready for pickup'],
      ['COMPLETED', 'picked up'],
    ] as const) {
      await pass.pos.sendStatus(webhook, { serviceOrderId, status });
      await story.getByText(`Member notified: ${told}`).waitFor();
    }
    await says(page, 'Member sees picked up');
    expect(await story.getByRole('listitem').first().textContent()).toContain('The platform signalled the order');
  });

  it('shows that the member is watching while a phone follows the order', async () => {
    const { serviceOrderId } = await pass.system.placeOrder();
    await reaches(serviceOrderId, 'sent');
    const isWritten = async (): Promise<boolean> =>
      (await pass.system.query('SELECT FROM followed_orders WHERE service_order_id = $1', [serviceOrderId])).length > 0;
    const authorization = `Bearer ${await memberToken(serviceOrderId)}`;
    const phone = await readEvents(`${pass.system.urls[0]}/follow`, { authorization });
    await until(isWritten, 10_000);
    const { page } = await pass.open(`/console/orders/${serviceOrderId}`);
    await says(page, 'The member was notified that the order was sent to the restaurant. The member is watching.');

    phone.leave();
    await until(async () => !(await isWritten()), 10_000);
    await pass.pos.sendStatus(await pass.system.webhookUrl('club-1'), { serviceOrderId, status: 'READY' });
    await says(page, /^The member was notified that the order is ready for pickup\.$/);
  });

  it('is replaced by an explanation if the order is unknown', async () => {
    const { page } = await pass.open('/console/orders/no-such-order');
    await says(page, /No order .* was found/);
    expect(pass.complaints()).toContain('404: /console/api/orders/no-such-order');
  });
});

describe('member data of an order', () => {
  const MEMBER = [
    'Ada Lovelace',
    'ada@example.com',
    '+493012345678',
    'Lindenstraße 14',
    'Ring twice',
    'One of them well done',
    'Table by the terrace',
  ];
  const REASON = 'Ada was not at home';

  it('is neither on the page nor in its requests until it is revealed, and is masked again on other pages', async () => {
    const { serviceOrderId } = await pass.system.placeOrder({ type: 'delivery' });
    await reaches(serviceOrderId, 'sent');
    await pass.pos.sendStatus(await pass.system.webhookUrl('club-1'), {
      serviceOrderId,
      status: 'FAILED',
      reason: REASON,
    });
    const { page, answers } = await pass.open(`/console/orders/${serviceOrderId}`);
    await says(page, 'The POS reported: failed');
    await says(page, 'Classic Burger');
    expect(found(await page.evaluate(everything), [...MEMBER, REASON])).toEqual([]);
    expect(found((await answers()).join(''), [...MEMBER, REASON])).toEqual([]);
    const reads = (): number => pass.system.logged.filter((line) => line.includes('"action":"read contents"')).length;
    const before = reads();

    await page.getByRole('button', { name: /^Reveal/ }).click();
    for (const word of [...MEMBER, REASON]) await says(page, word);
    expect(reads()).toBe(before + 1);

    await page.getByRole('link', { name: 'Board' }).click();
    await page.getByRole('heading', { level: 1, name: 'Board' }).waitFor();
    await page.goBack();
    await says(page, 'The POS reported: failed');
    expect(found(await page.evaluate(everything), [...MEMBER, REASON])).toEqual([]);
  });
});

function found(text: string, words: readonly string[]): string[] {
  return words.filter((word) => text.includes(word));
}
