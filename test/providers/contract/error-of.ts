import { expect } from 'vitest';

/** Returns the thrown error. Fails if nothing is thrown. */
export function errorOf(throws: () => unknown): Error {
  try {
    throws();
  } catch (error) {
    return error as Error;
  }
  return expect.unreachable('nothing was thrown');
}
