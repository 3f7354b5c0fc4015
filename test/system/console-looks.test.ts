/** How the console looks on a Friday night, and how a screen reader finds it. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scoreHours } from '../../src/core/orders/score-hours.ts';
import { until } from '../../world/processes/until.ts';
import {
  clubName,
  FRIDAY_IDS,
  FRIDAY_PROVIDERS,
  HARBOUR,
  LAKESIDE,
  spendFridayNight,
  type Friday,
} from './friday-night.ts';
import {
  countAnimations,
  cutOff,
  ground,
  idsInSight,
  opacity,
  readTexts,
  smallTargets,
  sticksOut,
  ticketsInSight,
} from './in-page.ts';
import { machineWordsIn } from './machine-words.ts';
import { askAxe } from './open-browser.ts';
import { heading, isLive, says } from './on-page.ts';
import { useConsole } from './open-console.ts';

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 780 };
/** A README has several of them. */
const PICTURE_BYTES = 230_000;
/** Where pictures are kept, such as docs/console; without it none is. */
const SCREENSHOTS = process.env['SCREENSHOTS'];

const pass = useConsole(
  { providers: FRIDAY_PROVIDERS, env: { PUBLIC_URL: 'https://expediter.example' } },
  { refused: /^(401: \/console\/session|400: \/console\/api\/locations\/new-club)$/ },
);
let friday: Friday;

beforeAll(async () => {
  friday = await spendFridayNight(pass.system);
});
afterAll(() => friday?.stop());

const press = (page: Page, name: string | RegExp): Promise<void> => page.getByRole('button', { name }).first().click();
/** Goes to a page and waits for something on it. */
const come = async (page: Page, path: string, words: string | RegExp): Promise<void> => {
  await page.goto(`/console/${path}`);
  await says(page, words);
};
/** Goes to a page and presses what opens a dialog there. */
const ask = async (page: Page, path: string, button: string | RegExp): Promise<void> => {
  await page.goto(`/console/${path}`);
  await press(page, button);
  await page.getByRole('dialog').waitFor();
};
const openDropped = async (page: Page): Promise<void> => {
  await page.goto('/console/webhooks?outcome=dropped');
  await page.getByRole('table').getByRole('row').nth(1).getByRole('link').first().click();
  await says(page, 'Why was this dropped?');
};

describe('the board', () => {
  it('begins with what needs a person, each with a link', async () => {
    const { page } = await pass.open();
    const { ids } = friday;
    for (const [group, link, leadsTo] of [
      [/^In doubt 1/, ids.doubtful, `/console/orders/${ids.doubtful}`],
      [/^Conflicts 1/, ids.conflicting, `/console/orders/${ids.conflicting}`],
      [/^Failed orders 1/, ids.refused, `/console/orders/${ids.refused}`],
      [/^On hold 1/, ids.held, `/console/orders/${ids.held}`],
      [/^Silent locations 1/, clubName(friday.silent), `/console/locations/${friday.silent}`],
      [
        /^Dropped webhooks 5/,
        clubName(friday.misconfigured),
        `/console/webhooks?outcome=dropped&location=${friday.misconfigured}`,
      ],
    ] as const) {
      const found = page.getByRole('region', { name: group }).getByRole('link', { name: new RegExp(link) });
      await found.waitFor();
      expect(await found.getAttribute('href')).toBe(leadsTo);
    }
    await page.getByRole('link', { name: 'Orders', exact: true }).click();
    await heading(page, 'Orders');
    await page.getByRole('link', { name: 'Board', exact: true }).click();
    await until(async () => (await page.title()) === '(6) Board · The pass');
  });

  it('shows four tickets of each column on a laptop, below what needs a person', async () => {
    const { page } = await pass.open('/console/', { viewport: WIDE });
    const groups = page.getByRole('region', { name: 'Needs a person' }).getByRole('region');
    await groups.nth(5).waitFor();
    const tops = await Promise.all((await groups.all()).map(async (group) => (await group.boundingBox())?.y));
    expect(new Set(tops).size, 'all six in one row').toBe(1);
    for (const column of ['sent', 'preparing', 'done']) {
      expect(await page.evaluate(ticketsInSight, column), column).toBeGreaterThanOrEqual(4);
    }
  });

  it.each([WIDE, NARROW])('says at each group what to do, in a window of %j', async (viewport) => {
    const { page } = await pass.open('/console/', { viewport });
    const needs = page.getByRole('region', { name: 'Needs a person' });
    await needs.getByRole('region').nth(5).waitFor();
    const hints = await needs.locator('.needs-hint').all();
    expect(hints.length).toBe(await needs.getByRole('region').count());
    for (const hint of hints) expect((await hint.boundingBox())?.width).toBeGreaterThan(100);
  });

  it.each([WIDE, NARROW])('cuts off no text of a ticket in a window of %j', async (viewport) => {
    const { page } = await pass.open('/console/', { viewport });
    const tickets = page.locator('[data-ticket]');
    await tickets.nth(3).waitFor();
    const ticket = page.locator(`[data-ticket="${friday.ids.held}"]`);
    expect(await ticket.textContent()).toMatch(/due in .*F-\d+ .*€\d+\.\d\d .*Lakeside Grill .*held: \S.*(item|×)/);
    expect(await page.evaluate(cutOff)).toEqual([]);
  });

  it('makes an empty column as narrow as its name', async () => {
    const { page } = await pass.open(`/console/?location=${friday.misconfigured}`, { viewport: WIDE });
    const width = async (name: RegExp): Promise<number> =>
      (await page.getByRole('region', { name }).boundingBox())?.width ?? 0;
    await page.getByRole('region', { name: /^Placed 0/ }).waitFor();
    expect(await width(/^Placed 0/)).toBeLessThan(50);
    expect(await width(/^Sent 5/)).toBeGreaterThan(150);
  });

  it('begins on a phone with the column that has an order in doubt', async () => {
    const { page } = await pass.open('/console/', { viewport: NARROW });
    const column = page.getByRole('region', { name: /^Placed/ });
    const link = column.getByRole('link', { name: new RegExp(friday.ids.doubtful) });
    await link.waitFor();
    const [list, last] = [column.getByRole('list'), column.getByRole('link').last()];
    const [bottom, end] = await Promise.all(
      [list, last].map(async (each) => ((box) => (box?.y ?? 0) + (box?.height ?? 0))(await each.boundingBox())),
    );
    expect((bottom ?? 0) - (end ?? 0)).toBeLessThan(20);
    await page.getByRole('button', { name: /^24 Done today\s*needs you$/ }).waitFor();
    await page.getByRole('button', { name: /^15 Sent$/ }).waitFor();
  });

  it('gives a group of needs the width that its texts need', async () => {
    const { page } = await pass.open('/console/', { viewport: WIDE });
    const width = async (name: RegExp): Promise<number> => {
      const group = page.getByRole('region', { name });
      await group.waitFor();
      return (await group.boundingBox())?.width ?? 0;
    };
    expect(await width(/^On hold 1/)).toBeGreaterThan((await width(/^In doubt 1/)) + 20);
  });

  it('shows the actions on a need to a mouse and to the keyboard, without moving its text', async () => {
    const { page } = await pass.open('/console/', { viewport: WIDE });
    const need = page.getByRole('region', { name: /^On hold 1/ }).getByRole('listitem');
    const [link, action] = [need.getByRole('link'), need.getByRole('button', { name: /^Case of/ })];
    const seen = (): Promise<unknown> => action.evaluate(opacity);
    await link.waitFor();
    const [hidden, before] = [await seen(), await link.boundingBox()];
    await need.hover();
    const hovered = [await seen(), await link.boundingBox()];
    await page.mouse.move(0, 0);
    await link.focus();
    expect([hidden, hovered, await seen()]).toEqual(['0', ['1', before], '1']);
  });

  it('hides a failed order whose case is closed, until somebody shows it', async () => {
    const { page } = await pass.open();
    const failed = page.getByRole('region', { name: /^Failed orders/ });
    const order = failed.getByRole('link', { name: new RegExp(friday.ids.refused) });
    await order.waitFor();
    await failed.getByRole('button', { name: /^Case of/ }).click();
    await page.getByRole('button', { name: 'Close the case …' }).click();
    await page.getByRole('button', { name: 'Close the case', exact: true }).click();
    await page.getByRole('button', { name: 'Back to the board' }).click();
    await order.waitFor({ state: 'detached' });
    await page.reload();
    await failed.getByRole('button', { name: 'Show 1 snoozed or closed' }).click();
    await order.waitFor();
  });
});

describe('the navigation', () => {
  it.each([360, 390, 800, 1024, 1280])(
    'has all pages in sight, and is not scrolled, at a width of %d px',
    async (width) => {
      const { page } = await pass.open('/console/none', { viewport: { width, height: 780 } });
      const pages = page.getByRole('navigation', { name: 'Pages' });
      await pages.getByRole('link').nth(7).waitFor();
      for (const link of await pages.getByRole('link').all()) {
        const { x = -1, width: its = 0 } = (await link.boundingBox()) ?? {};
        expect([x >= 0, x + its <= width], (await link.textContent()) ?? '').toEqual([true, true]);
      }
      expect((await pages.boundingBox())?.height).toBeLessThan(width < 640 ? 100 : 60);
    },
  );
});

it('a board with orders in each column has all columns in sight, also on a small laptop', async () => {
  const { page } = await pass.open('/console/', { viewport: WIDE });
  await isLive(page);
  const columns = page.locator('.board-columns');
  expect(await columns.locator('.board-column:not(.empty)').count()).toBe(8);
  expect(await columns.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
});

describe('the table of vendors', () => {
  it('compares them in rows, and sorts by a column with its worst first', async () => {
    await scoreHours(pass.system.pool, 0);
    const { page } = await pass.open('/console/vendors', { viewport: WIDE });
    const rows = page.getByRole('row');
    await rows.nth(5).waitFor();
    const accepted = page.getByRole('columnheader', { name: 'Accepted' });
    await accepted.getByRole('button').press('Enter');
    await accepted.and(page.locator('[aria-sort=descending]')).waitFor();
    expect(await rows.nth(1).textContent()).toMatch(/^Standard API50 %/);
  });
});

describe('a chart', () => {
  it('says the values of each time to the keyboard', async () => {
    const { page } = await pass.open('/console/traffic?hours=6', { viewport: WIDE });
    const chart = page.getByRole('slider', { name: 'Webhooks, by outcome: values at a time' }).first();
    const said = (): Promise<string | null> => chart.getAttribute('aria-valuetext');
    await chart.focus();
    expect(await said()).toMatch(/^\d\d:\d\d, so far, applied \d+, /);
    const last = await chart.inputValue();
    await page.keyboard.press('ArrowLeft');
    expect(await said()).toMatch(/^\d\d:\d\d, applied \d+, /);
    expect(Number(last) - Number(await chart.inputValue())).toBe(1);
    await says(page, /^Times are in /);
  });
});

/** How one comes to everything that there is to see. None of it changes anything. */
const VIEWS: Record<string, (page: Page) => Promise<unknown>> = {
  'the board': async (page) => {
    await come(page, '', /^Live$/);
    await says(page, 'Needs a person');
  },
  'the list of orders': async (page) => {
    await page.goto('/console/orders?open=true');
    await page.getByRole('link', { name: new RegExp(friday.ids.cooking) }).waitFor();
  },
  'an order': (page) => come(page, `orders/${friday.ids.done}`, /^Member notified: (picked up|delivered)/),
  'an order with all its steps': async (page) => {
    await press(page, /^Show all/);
    await says(page, 'the restaurant makes the order anyway');
  },
  'a revealed order': async (page) => {
    await press(page, /^Reveal/);
    await says(page, 'Subtotal');
  },
  'an order with a conflict': (page) =>
    come(page, `orders/${friday.ids.conflicting}`, /^The POS reported “completed” and “cancelled”/),
  'a retry': (page) => ask(page, `orders/${friday.ids.held}`, 'Retry now'),
  'an order in doubt': (page) => ask(page, `orders/${friday.ids.doubtful}`, 'It is there'),
  'an unknown order': async (page) => {
    await come(page, 'orders/none', /No order .* was found/);
    pass.complaints();
  },
  webhooks: async (page) => {
    await page.goto('/console/webhooks');
    await page
      .getByRole('row', { name: /applied/ })
      .first()
      .waitFor();
  },
  'a dry run': async (page) => {
    await page.goto('/console/webhooks?outcome=dropped');
    await press(page, /^Replay all/);
    await says(page, 'Dry run: expected results');
    await page.getByRole('button', { name: 'Close' }).waitFor();
  },
  'a location with dropped webhooks': async (page) => {
    await page.goto(`/console/webhooks?outcome=dropped&location=${friday.misconfigured}`);
    await page.getByLabel('Secret', { exact: true }).waitFor();
  },
  'a dropped webhook': openDropped,
  'a revealed webhook': async (page) => {
    await openDropped(page);
    await press(page, /^Reveal/);
    await says(page, 'webhook-signature');
  },
  'a replay': async (page) => {
    await openDropped(page);
    await press(page, /^Replay/);
    await says(page, /^A replay applies it again/);
    await page.getByRole('dialog').getByText('dropped').first().waitFor();
  },
  locations: (page) => come(page, 'locations', clubName(friday.silent)),
  'a location': (page) =>
    come(page, `locations/${friday.silent}`, /^4 tickets without a report since .*Call the restaurant/),
  'a new location': async (page) => {
    await page.goto('/console/locations/new');
    await press(page, /^Next/);
    await says(page, 'Choose a POS.');
  },
  'the settings of a new location': async (page) => {
    await page
      .getByLabel(/^Standard API/)
      .first()
      .check();
    await page.getByLabel('Id', { exact: true }).fill('new-club');
    await page.getByLabel('Name', { exact: true }).fill('New Club');
    await press(page, /^Next/);
    await page.getByLabel('Orders URL').fill('https://pos.example.com/orders');
    await press(page, /^Next/);
    await says(page, 'Fill this in, or “Unsigned”.');
    // The service judges a field that is left.
    pass.complaints();
  },
  'the check of a new location': async (page) => {
    await page.getByLabel('Unsigned').selectOption('yes');
    await press(page, /^Next/);
    await page.getByRole('button', { name: 'Save' }).waitFor();
  },
  'a location with its history': (page) => come(page, `locations/${HARBOUR}`, /Secret: changed/),
  'held orders of a location': (page) =>
    come(page, `orders?state=held&location=${LAKESIDE}`, /^The POS has nothing at this address/),
  'a change of a location': async (page) => {
    await page.goto(`/console/locations/${friday.misconfigured}`);
    await press(page, /^Edit/);
    await says(page, 'Contacts');
  },
  'a revocation': (page) => ask(page, `locations/${friday.misconfigured}`, /^Revoke/),
  traffic: async (page) => {
    await come(page, 'traffic?hours=6', 'Webhooks, by outcome');
    await page.getByText('As a table').first().click();
  },
  vendors: async (page) => {
    await scoreHours(pass.system.pool, 0);
    await page.goto('/console/vendors');
    await page.getByRole('row', { name: /^Standard API 5/ }).waitFor();
  },
  people: async (page) => {
    await come(page, 'people', 'this browser');
    await press(page, /^Make a token/);
    await page.getByRole('dialog').waitFor();
  },
  'the audit': (page) => come(page, 'audit', 'Shared operator token signed in'),
  'an unknown page': async (page) => {
    await page.goto('/console/none');
    await heading(page, 'Page not found');
  },
};

describe('axe-core finds no fault, nothing is wider than a phone, places have names, and no text has a code:', () => {
  let page: Page;
  beforeAll(async () => {
    ({ page } = await pass.open('/console/none', { viewport: WIDE }));
  });

  async function isFine(): Promise<void> {
    const found: Record<string, string[]> = {};
    for (const viewport of [WIDE, NARROW]) {
      await page.setViewportSize(viewport);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        found[`axe, ${colorScheme}, ${viewport.width}`] = await askAxe(page, { colours: colorScheme === 'dark' });
      }
      found[`sticks out, ${viewport.width}`] = await page.evaluate(sticksOut);
      found[`ids, ${viewport.width}`] = await page.evaluate(idsInSight, FRIDAY_IDS);
    }
    found['targets'] = await page.evaluate(smallTargets);
    found['machine words'] = machineWordsIn(await page.evaluate(readTexts));
    await page.setViewportSize(WIDE);
    expect(Object.fromEntries(Object.entries(found).filter(([, complaints]) => complaints.length > 0))).toEqual({});
  }

  it.each(Object.entries(VIEWS))('%s', async (_name, see) => {
    await see(page);
    await isFine();
  });

  it('the login', async () => {
    ({ page } = await pass.openLoggedOut());
    await page.getByLabel('Operator token').fill('wrong');
    await press(page, 'Sign in');
    await says(page, 'This is not a valid operator token');
    await isFine();
  });
});

describe('the console', () => {
  it("follows the browser's preference for dark mode", async () => {
    const { page } = await pass.open();
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await page.evaluate(ground);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(brightness(light)).toBeGreaterThan(200);
    expect(brightness(await page.evaluate(ground))).toBeLessThan(60);
  });

  it.each([
    ['no-preference', true],
    ['reduce', false],
  ] as const)('with the preference "%s" for reduced motion animates a new order: %s', async (reducedMotion, moves) => {
    const { page } = await pass.open('/console/?text=order-moves', { reducedMotion });
    await isLive(page);
    const serviceOrderId = `order-moves-${reducedMotion}`;
    await pass.system.seedOrder({ serviceOrderId, locationId: friday.misconfigured });
    await page.getByRole('link', { name: new RegExp(serviceOrderId) }).waitFor();
    expect((await page.evaluate(countAnimations)) > 0).toBe(moves);
    await pass.system.query('DELETE FROM orders WHERE service_order_id = $1', [serviceOrderId]);
    await pass.system.query('DELETE FROM placements WHERE service_order_id = $1', [serviceOrderId]);
  });
});

describe('the screenshot for the README', () => {
  beforeAll(() => friday.seedTraffic());

  const PHONE = {
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 2,
    colorScheme: 'dark',
    isMobile: true,
  } as const;
  const DESK = { viewport: WIDE, colorScheme: 'light' } as const;

  it.each([
    ['board', DESK, '/console/', isLive],
    ['board-phone', PHONE, '/console/?text=F-205', isLive],
    [
      'order',
      { ...DESK, viewport: { width: 1280, height: 720 } },
      '/console/orders',
      (page: Page) => come(page, `orders/${friday.ids.retried}`, 'The POS reported: ready'),
    ],
    ['webhook', DESK, '/console/webhooks', openDropped],
    ['traffic', DESK, '/console/traffic?hours=6', (page: Page) => says(page, 'Webhooks, by outcome')],
  ] as const)('of %s is smaller than the limit', async (name, device, path, see) => {
    const { page } = await pass.open(path, { ...device, reducedMotion: 'reduce' });
    await see(page);
    await page.evaluate('document.fonts.ready');
    const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    if (SCREENSHOTS !== undefined && SCREENSHOTS !== '') {
      await mkdir(SCREENSHOTS, { recursive: true });
      await writeFile(join(SCREENSHOTS, `${name}.png`), picture);
    }
    expect(picture.length).toBeLessThan(PICTURE_BYTES);
  });
});

/** Of `rgb(…)`, from 0 to 255. */
function brightness(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map(Number);
  return (red + green + blue) / 3;
}
