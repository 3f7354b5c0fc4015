import { InvalidArgumentError } from 'commander';

/** Rows of a list: the default, and the most. */
export const LIST_LIMIT = 50;
export const LIST_LIMIT_MAX = 1000;

export function readLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_LIMIT_MAX) return limit;
  throw new InvalidArgumentError(`Right would be a number from 1 to ${LIST_LIMIT_MAX}.`);
}
