/** Takes the place of the package `undici`, which `guardedFetch` loads. */
import { theNetwork } from './network.ts';

export const fetch: typeof globalThis.fetch = (input, init) => theNetwork().fetch(input, init);

/** What is connected to is decided by the network. */
export function Agent(): object {
  return {};
}
