/** Makes a 409: nothing was changed, and why. */
export function conflict({ refused, cause }: { refused: string; cause: { code: string } }): Error {
  return Object.assign(new Error(refused, { cause }), { statusCode: 409 });
}
