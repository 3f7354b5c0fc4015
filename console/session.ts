import { signal } from '@preact/signals';

/** What the page knows of its session; the cookie itself no script can see. */
export type Session = { state: 'unknown' } | { state: 'out' } | { state: 'in'; until: string; version: string };

export const session = signal<Session>({ state: 'unknown' });

/** @throws when the service cannot be reached */
export async function findSession(): Promise<void> {
  const response = await fetch('/console/session');
  if (response.ok) session.value = { state: 'in', ...((await response.json()) as { until: string; version: string }) };
  else if (response.status === 401) session.value = { state: 'out' };
  else throw new Error(`The service answered ${response.status}.`);
}

/** @returns whether the token was right */
export async function logIn(token: string): Promise<boolean> {
  const response = await fetch('/console/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (response.status === 401 || response.status === 400) return false;
  if (!response.ok) throw new Error(`The service answered ${response.status}.`);
  await findSession();
  return true;
}

export async function logOut(): Promise<void> {
  await fetch('/console/session', { method: 'DELETE' });
  session.value = { state: 'out' };
}
