import { signal } from '@preact/signals';

/** Set while the operator is asked to sign in again. `close` is called with true if they did. */
export const askedAgain = signal<{ proof: boolean; close: (isDone: boolean) => void } | undefined>(undefined);

/**
 * Asks the operator to sign in again. Changes of permissions and reads of member data require it.
 * @param proof whether the issuer must authenticate them again, not only use its own session
 * @returns whether they did
 */
export async function signInAgain(proof: boolean): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  askedAgain.value = { proof, close: resolve };
  return promise.finally(() => (askedAgain.value = undefined));
}
