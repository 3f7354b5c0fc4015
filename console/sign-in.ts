import { signal } from '@preact/signals';
import { Refused, call } from './call.ts';

/** What the page knows of its session; the cookie itself no script can see. */
export type Session = { state: 'unknown' } | { state: 'out' } | { state: 'in'; until: string; version: string };

export const session = signal<Session>({ state: 'unknown' });

const PATH = '/console/session';
/** Who logs out means all pages of this browser. */
const pages = new BroadcastChannel(PATH);
pages.addEventListener('message', forget);

/** @throws Refused, for other reasons than that there is none */
export async function findSession(): Promise<void> {
  try {
    session.value = { state: 'in', ...(await call<{ until: string; version: string }>('GET', PATH)) };
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    forget();
  }
}

/** @returns whether the token was right @throws when there is no session for another reason */
export async function logIn(token: string): Promise<boolean> {
  try {
    await call('POST', PATH, { body: { token } });
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    return false;
  }
  await findSession();
  if (session.value.state === 'out') throw new Error('your browser keeps no cookie of this address');
  return true;
}

/** @throws Refused; the session goes on then */
export async function logOut(): Promise<void> {
  await call('DELETE', PATH);
  forget();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- no other origin has this channel
  pages.postMessage('out');
}

/** It is over, or there was none. */
export function forget(): void {
  session.value = { state: 'out' };
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof Refused && error.status === 401;
}
