import { signal } from '@preact/signals';
import { Refused, call } from './call.ts';
import type { Right } from './wire.ts';

/** The session as the page knows it. Scripts cannot read its cookie. */
export type Session =
  | { state: 'unknown' }
  /** `hasEnded` if it ended without a sign-out here. */
  | { state: 'out'; hasEnded: boolean }
  | {
      state: 'in';
      kind: 'person' | 'token' | 'operator_token';
      name: string;
      rights: readonly Right[];
      until: string;
      openedAt: string;
      version: string;
      /** How the service can tell restaurants of orders. A process of the previous version does not say it. */
      notifies?: readonly string[];
    };

export const session = signal<Session>({ state: 'unknown' });

const PATH = '/console/session';
/** A channel that logs out all pages of this browser. */
const pages = new BroadcastChannel(PATH);
pages.addEventListener('message', leave);

/** Whether people can sign in by OIDC. */
export async function hasOidc(): Promise<boolean> {
  return (await call<{ oidc: boolean }>('GET', `${PATH}/ways`)).oidc;
}

/** Loads the session. Without one, the login appears. @throws Refused for any other error */
export async function findSession(): Promise<void> {
  try {
    session.value = { state: 'in', ...(await call<Omit<Session & { state: 'in' }, 'state'>>('GET', PATH)) };
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    endSession();
  }
}

/** @returns whether the token was right @throws Refused if the sign-in fails for another reason */
export async function logIn(token: string): Promise<boolean> {
  try {
    await call('POST', PATH, { body: { token } });
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    return false;
  }
  await findSession();
  if (session.value.state === 'out') throw new Error('your browser stores no cookie for this address');
  return true;
}

/** @param everywhere ends all sessions of the operator @throws Refused; then the session continues */
export async function logOut(everywhere = false): Promise<void> {
  await call('DELETE', everywhere ? '/console/sessions' : PATH);
  leave();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- no other origin has this channel
  pages.postMessage('out');
}

/** Marks the session as ended or absent. */
export function endSession(): void {
  if (session.value.state !== 'out') session.value = { state: 'out', hasEnded: session.value.state === 'in' };
}

function leave(): void {
  session.value = { state: 'out', hasEnded: false };
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof Refused && error.status === 401;
}
