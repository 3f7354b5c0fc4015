import type { Browser, BrowserContextOptions } from 'playwright-core';
import { OPERATOR_TOKEN } from '../support/ask-operator.ts';
import { startSystem, type System } from '../support/start-system.ts';
import { openBrowser, openPage, type Opened } from './open-browser.ts';

export type Console = {
  system: System;
  /** Somebody who has logged in, in a browser profile of their own, on the page of that path. */
  open(path?: string, about?: BrowserContextOptions & { url?: string }): Promise<Opened>;
  /** Somebody who has not. */
  openLoggedOut(path?: string, about?: BrowserContextOptions & { asks?: readonly string[] }): Promise<Opened>;
  /** What should not have happened in any page since it was asked last; see `Opened`. */
  complaints(): string[];
  stop(): Promise<void>;
};

/** The whole system with its console, and a browser. */
export async function openConsole(about: Parameters<typeof startSystem>[0] = {}): Promise<Console> {
  const [system, browser] = await Promise.all([
    startSystem({ jobs: 'all', ...about, env: { OPERATOR_TOKEN, ...about.env } }),
    openBrowser(),
  ]);
  const url = system.urls[0] ?? '';
  const all: Opened[] = [];
  const open = async (path: string, options: Parameters<typeof openPage>[1]): Promise<Opened> => {
    const opened = await openPage(browser, options);
    all.push(opened);
    await opened.page.goto(path);
    return opened;
  };
  return {
    system,
    open: (path = '/console/', options = {}) => open(path, { url, token: OPERATOR_TOKEN, ...options }),
    openLoggedOut: (path = '/console/', options = {}) => open(path, { url, ...options }),
    complaints: () => all.flatMap(({ complaints }) => complaints.splice(0)),
    async stop() {
      await close(browser);
      await system.stop();
    },
  };
}

async function close(browser: Browser): Promise<void> {
  // A page that is closed gives its streams up, for which a drain would wait.
  await Promise.all(browser.contexts().map((context) => context.close()));
  await browser.close();
}
