import { signal } from '@preact/signals';

/** The time at which each need was put aside, by its key. Only ids, and only in this browser. */
export type Aside = Readonly<Record<string, number>>;

const KEY = 'expediter.put-aside';
/** Time for which they are stored, longer than any need is shown. */
const STORED_MS = 48 * 3_600_000;

export const aside = signal<Aside>(read());

/** Hides needs that somebody has seen, until they are asked for. */
export function putAside(keys: readonly string[], now = Date.now()): void {
  store({ ...recent(aside.value, now), ...Object.fromEntries(keys.map((key) => [key, now])) });
}

export function bringBack(keys: readonly string[]): void {
  store(Object.fromEntries(Object.entries(aside.value).filter(([key]) => !keys.includes(key))));
}

/** Reads the changes of another tab of this browser. */
export function reloadAside(): void {
  aside.value = read();
}

function store(next: Aside): void {
  aside.value = next;
  try {
    localStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // Without storage, it holds until the page is closed.
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
