/** What runs in the page: each function is sent there as its text, so it knows nothing but its parameters and the page. */

/** As much of a browser as is asked here; the tests are typed for Node. */
type Element = {
  tagName: string;
  textContent: string;
  scrollWidth: number;
  clientWidth: number;
  /** Of what can be filled in. */
  labels?: Element[];
  getAttribute(name: string): string | null;
  getBoundingClientRect(): { top: number; right: number; bottom: number };
  closest(selector: string): Element | null;
  parentElement: Element | null;
  matches(selector: string): boolean;
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
  children: { length: number };
  childNodes: Iterable<{ nodeType: number; textContent: string }>;
  checkVisibility(): boolean;
  /** Of an input. */
  value?: string;
};
declare const document: {
  title: string;
  documentElement: Element & { outerHTML: string };
  body: Element;
  activeElement: (Element & { outerHTML: string }) | null;
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element> & { length: number };
  getAnimations(): object[];
  addEventListener(
    event: string,
    listen: (event: CspViolation & { target: Element }) => void,
    isCapturing?: boolean,
  ): void;
};
type CspViolation = { effectiveDirective: string; blockedURI: string; sourceFile: string; lineNumber: number };
declare const PerformanceObserver: new (
  seen: (list: { getEntries(): { duration: number; value: number }[] }) => void,
) => {
  observe(about: object): void;
};
declare const HTMLDialogElement: { prototype: Element & { showModal(this: Element): void } };
declare const axe: { run(options: { runOnly?: string[] }): Promise<{ violations: AxeViolation[] }> };
type AxeViolation = { id: string; help: string; nodes: { html: string; failureSummary?: string }[] };
/** What a test leaves in the page and asks for later. */
declare const window: {
  innerHeight: number;
  seen: Promise<number>;
  longTasks: number[];
  shifts: number[];
  tellTest(complaint: string): void;
};
declare const MutationObserver: new (changed: () => void) => {
  observe(node: object, about: object): void;
  disconnect(): void;
};
declare const getComputedStyle: (element: Element) => {
  outlineStyle: string;
  backgroundColor: string;
  opacity: string;
};
declare const requestAnimationFrame: (then: () => void) => void;

/** Says what the content security policy did not let through. */
export function tellViolations(): void {
  document.addEventListener('securitypolicyviolation', (event) => {
    window.tellTest(
      `policy: ${event.effectiveDirective} keeps out ${event.blockedURI} (${event.sourceFile}:${event.lineNumber})`,
    );
  });
}

/** Tells of a button that opens a dialog and whose text does not end with an ellipsis. */
export function tellDialogs(): void {
  let pressed: string | undefined;
  document.addEventListener('keydown', () => (pressed = undefined));
  document.addEventListener('click', ({ target }) => (pressed = target.closest('button')?.textContent.trim()), true);
  const { showModal } = HTMLDialogElement.prototype;
  HTMLDialogElement.prototype.showModal = function (): void {
    // A session that has ended opens a dialog after any button, and so does a change that looks wrong.
    const isUnforeseen = ['Sign in again', 'Save these changes?'].includes(this.getAttribute('aria-label') ?? '');
    if (pressed !== undefined && !/[…⋯]$/.test(pressed) && !isUnforeseen)
      window.tellTest(`a button opens a dialog and does not end with “…”: ${pressed}`);
    showModal.call(this);
  };
}

/** Keeps how long every task that held the page up took, in milliseconds; those under 50 do not count as such. */
export function watchLongTasks(): void {
  window.longTasks = [];
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longTasks.push(duration);
  });
  observer.observe({ type: 'longtask' });
}

export const longTasks = (): number[] => window.longTasks;

/** Keeps how much what was on screen moved without being asked, each time. */
export function watchShifts(): void {
  window.shifts = [];
  const observer = new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) window.shifts.push(value);
  });
  observer.observe({ type: 'layout-shift' });
}

export const shifts = (): number[] => window.shifts;

/** What axe-core has against the page as it is, by these rules or by all. */
export async function runAxe(rules: string[] | undefined): Promise<string[]> {
  const { violations } = await axe.run(rules === undefined ? {} : { runOnly: rules });
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary ?? ''}`),
  );
}

/** Whether the page as a whole scrolls sideways, and what sticks out. */
export function sticksOut(): string[] {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const out = [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > clientWidth + 1)
    .map((element) => `${element.tagName} ${element.textContent.slice(0, 40)}`);
  return [`${scrollWidth} > ${clientWidth}`, ...out.slice(0, 8)];
}

/** From now on looks out for an order under that heading. */
export function lookOut({ heading, serviceOrderId }: { heading: string; serviceOrderId: string }): void {
  window.seen = new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      for (const section of document.querySelectorAll('section')) {
        if (section.querySelector('h2')?.textContent.startsWith(heading) !== true) continue;
        if (section.querySelector(`a[href="/console/orders/${serviceOrderId}"]`) === null) continue;
        observer.disconnect();
        // It is in the page; one frame later it is on screen.
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(Date.now())));
      }
    });
    observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  });
}

/** From now on looks out for a heading of that name. */
export function lookOutForHeading(name: string): void {
  window.seen = new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (document.querySelector('h1')?.textContent !== name) return;
      observer.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => resolve(Date.now())));
    });
    observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}

/** When it came on screen, in milliseconds since the epoch. */
export const whenSeen = (): Promise<number> => window.seen;

/** What the focus is on, as one would call it, parts of the page as a whole apart; and whether one sees that it is. */
export function focused(): { name: string; isVisible: boolean } {
  const element = document.activeElement;
  if (element === null || !element.matches('a, button, input, select, summary, h1'))
    return { name: '', isVisible: false };
  const name = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent;
  return { name: name.trim(), isVisible: getComputedStyle(element).outlineStyle !== 'none' };
}

/** Whether the focus is somewhere in what the selector finds. */
export const isFocusIn = (selector: string): boolean =>
  document.activeElement !== null && document.activeElement.closest(selector) !== null;

/** Whether it is on something else than what the selector finds; on nothing, as when it is on the browser itself, it is not. */
export const isFocusBeside = (selector: string): boolean =>
  document.activeElement !== null &&
  document.activeElement.tagName !== 'BODY' &&
  document.activeElement.closest(selector) === null;

/** Of how many tickets of a column one sees all without scrolling. */
export function ticketsInSight(column: string): number {
  return [...document.querySelectorAll(`[data-column="${column}"] [data-ticket]`)].filter(
    (ticket) => ticket.getBoundingClientRect().bottom <= window.innerHeight,
  ).length;
}

/** Texts of tickets in sight that stand out of them, or of which a line is cut through. */
export function cutOff(): string[] {
  return [...document.querySelectorAll('[data-ticket]')].flatMap((ticket) => {
    const { top, right, bottom } = ticket.getBoundingClientRect();
    return [...ticket.querySelectorAll('b, span')]
      .filter((part) => part.children.length === 0)
      .filter((part) => {
        const box = part.getBoundingClientRect();
        return box.right > right || box.bottom > bottom || box.top < top;
      })
      .map((part) => `${ticket.textContent}: ${part.textContent}`);
  });
}

/**
 * The visible texts with one of these ids as a word: also what an input shows, and the page's title. Left out is what
 * one copies: addresses, commands and the ids themselves.
 */
export function idsInSight(ids: readonly string[]): string[] {
  const isId = (text: string): boolean => ids.some((id) => text.split(/[^\w-]+/).includes(id));
  const copied = 'datalist, option, script, code, .copyable, .short-id-head, [aria-label^="Copy"]';
  const texts = [...document.querySelectorAll('body *')]
    .filter((element) => element.closest(copied) === null && element.checkVisibility())
    .flatMap((element) => [
      ...[...element.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ textContent }) => textContent),
      element.matches('input:not([type=radio], [type=checkbox])') ? (element.value ?? '') : '',
      ...(element.matches('select') ? [...element.querySelectorAll('option')].map((each) => each.textContent) : []),
    ]);
  return [document.title, ...texts].filter(isId);
}

/** How many things move without an event. */
export const countAnimations = (): number => document.getAnimations().length;

/** The texts that people read at once: not what is folded, meant to be copied, or written by somebody else. */
export function readTexts(): string[] {
  const apart = 'code, pre, .mono, input, textarea, datalist, script, style, details > :not(summary)';
  const texts: string[] = [];
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest(apart) !== null) continue;
    const own = [...element.childNodes].map((node) => (node.nodeType === 3 ? node.textContent : ' ')).join('');
    texts.push(own.replaceAll(/\s+/g, ' ').trim());
    for (const name of ['aria-label', 'placeholder']) texts.push(element.getAttribute(name) ?? '');
  }
  return texts.filter((text) => text !== '');
}

export const ground = (): string => getComputedStyle(document.documentElement).backgroundColor;

export const opacity = (element: object): string => getComputedStyle(element as Element).opacity;

export const everything = (): string => document.documentElement.outerHTML;
export const countElements = (): number => document.querySelectorAll('*').length;

/** Tells of what a finger must hit and is lower than 24 px (WCAG 2.2). A link within a sentence may be. */
export function smallTargets(): string[] {
  return [...document.querySelectorAll('a:not(.skip, .linked th a), summary, button')].flatMap((each) => {
    const { top, bottom } = each.getBoundingClientRect();
    const isAlone = each.parentElement?.textContent.trim() === each.textContent.trim();
    return each.checkVisibility() && isAlone && bottom - top < 23.5 ? [`${bottom - top} px: ${each.textContent}`] : [];
  });
}
