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

/** Returns what it rejects with. Fails if it resolves. */
export async function rejectionOf(doing: Promise<unknown> | undefined): Promise<Error> {
  if (doing === undefined) return expect.unreachable('the provider has no such method');
  return doing.then(
    (value) => expect.unreachable(`it returned ${JSON.stringify(value)}`),
    (error: unknown) => error as Error,
  );
}
