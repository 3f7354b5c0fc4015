import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { openBrowser, openPage, type Opened } from './open-browser.ts';

type Console = {
  system: System;
  /** Somebody who has logged in, in a browser profile of their own, on the page of that path. */
  open(path?: string, about?: BrowserContextOptions & { url?: string; token?: string }): Promise<Opened>;
  /** Somebody who has not. */
  openLoggedOut(path?: string, about?: BrowserContextOptions & { asks?: readonly string[] }): Promise<Opened>;
  /** What should not have happened in any page since it was asked last; see `Opened`. */
  complaints(): string[];
  stop(): Promise<void>;
};

type ConsoleOptions = NonNullable<Parameters<typeof startSystem>[0]>;

/**
 * The console of all tests of a file, and a POS. After each test, no page may have had a complaint.
 * @param about the system's options, or how to get them
 * @param more.posSecret with which the POS signs
 * @param more.refused complaints that are no fault
 */
export function useConsole(
  about: ConsoleOptions | (() => Promise<ConsoleOptions>) = {},
  more: { posSecret?: string; refused?: RegExp } = {},
): Console & { pos: Pos } {
  const pass = {} as Console & { pos: Pos };
  beforeAll(async () => {
    pass.pos = await startPos(more.posSecret === undefined ? {} : { secret: more.posSecret });
    Object.assign(pass, await openConsole(typeof about === 'function' ? await about() : about));
  });
  afterEach(() => expect(pass.complaints().filter((complaint) => !more.refused?.test(complaint))).toEqual([]));
  afterAll(async () => {
    await pass.stop?.();
    await pass.pos?.stop();
  });
  return pass;
}

/** The whole system with its console, and a browser. */
async function openConsole(about: ConsoleOptions): Promise<Console> {
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
