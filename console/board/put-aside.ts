import { signal } from '@preact/signals';

/** When each was put aside, by its key: ids and no more. In this browser only. */
export type Aside = Readonly<Record<string, number>>;

const KEY = 'expediter.put-aside';
/** Longer than anything it is about is shown. */
const KEPT_MS = 48 * 3_600_000;

export const aside = signal<Aside>(read());

/** Somebody has looked at them: they are not shown until they are asked for. */
export function putAside(keys: readonly string[], now = Date.now()): void {
  keep({ ...recent(aside.value, now), ...Object.fromEntries(keys.map((key) => [key, now])) });
}

export function bringBack(keys: readonly string[]): void {
  keep(Object.fromEntries(Object.entries(aside.value).filter(([key]) => !keys.includes(key))));
}

/** Another tab of this browser has changed it. */
export function readAgain(): void {
  aside.value = read();
}

function keep(next: Aside): void {
  aside.value = next;
  try {
    localStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // Without a place to keep it, it holds until the page is closed.
  }
}

function read(): Aside {
  try {
    return recent(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Aside, Date.now());
  } catch {
    return {};
  }
}

function recent(all: Aside, now: number): Aside {
  return Object.fromEntries(Object.entries(all).filter(([, at]) => typeof at === 'number' && now - at < KEPT_MS));
}
