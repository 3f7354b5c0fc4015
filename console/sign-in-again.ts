import { signal } from '@preact/signals';

/** Whoever is asked to sign in once more; `close` says whether they did. */
export const askedAgain = signal<{ close: (isDone: boolean) => void } | undefined>(undefined);

/** Asks whoever is signed in to sign in once more, as what changes who may what takes. @returns whether they did */
export async function signInAgain(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  askedAgain.value = { close: resolve };
  return promise.finally(() => (askedAgain.value = undefined));
}
