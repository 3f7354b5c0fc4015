import { expect } from 'vitest';

/** What it throws; it must throw something. */
export function errorOf(throws: () => unknown): Error {
  try {
    throws();
  } catch (error) {
    return error as Error;
  }
  return expect.unreachable('nothing was thrown');
}
