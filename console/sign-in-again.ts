import { signal } from '@preact/signals';

/** Set while the operator is asked to sign in again. `close` says whether they did. */
export const askedAgain = signal<{ proof: boolean; close: (isDone: boolean) => void } | undefined>(undefined);

/**
 * Asks the operator to sign in again, as a change of permissions and a look at member data take.
 * @param proof whether the issuer must look at them, and not only remember them
 * @returns whether they did
 */
export async function signInAgain(proof: boolean): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  askedAgain.value = { proof, close: resolve };
  return promise.finally(() => (askedAgain.value = undefined));
}
