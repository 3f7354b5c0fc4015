import type { Locator, Page } from 'playwright-core';

/** What tests of a page do and wait for again and again. */
export const says = (page: Page | Locator, text: string | RegExp): Promise<void> =>
  page.getByText(text).first().waitFor();
export const heading = (page: Page, name: string): Promise<void> =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
export const isLive = (page: Page): Promise<void> => page.getByText('Live', { exact: true }).waitFor();
export const press = (page: Page | Locator, name: string | RegExp): Promise<void> =>
  page.getByRole('button', { name }).click();
export const seesLink = (page: Page | Locator, name: RegExp): Promise<void> =>
  page.getByRole('link', { name }).first().waitFor();
/** Presses a button of the dialog that asks. */
export const confirm = (page: Page, dialog: string, action: string): Promise<void> =>
  page.getByRole('dialog', { name: dialog }).getByRole('button', { name: action, exact: true }).click();
