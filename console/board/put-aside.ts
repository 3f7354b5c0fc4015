import { signal } from '@preact/signals';

/** The time at which each need was put aside, by key. Stored in this browser only, without member data. */
export type Aside = Readonly<Record<string, number>>;

const KEY = 'expediter.put-aside';
/** How long entries are stored: longer than any need is shown. */
const STORED_MS = 48 * 3_600_000;

export const aside = signal<Aside>(read());

/** Hides needs that the operator has seen. */
export function putAside(keys: readonly string[], now = Date.now()): void {
  store({ ...recent(aside.value, now), ...Object.fromEntries(keys.map((key) => [key, now])) });
}

export function bringBack(keys: readonly string[]): void {
  store(Object.fromEntries(Object.entries(aside.value).filter(([key]) => !keys.includes(key))));
}

/** Reads changes made in another tab. */
export function reloadAside(): void {
  aside.value = read();
}

function store(next: Aside): void {
  aside.value = next;
  try {
    localStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // Without storage, the state lasts until the page is closed.
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
  return Object.fromEntries(Object.entries(all).filter(([, at]) => typeof at === 'number' && now - at < STORED_MS));
}
