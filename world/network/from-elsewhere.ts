import { randomInt } from 'node:crypto';

/** What to set for `fromElsewhere` to be believed. */
export const BEHIND_US = { TRUSTED_PROXIES: '127.0.0.1' };

/** The header of a request that comes from an address which nobody has come from, so that no wrong one before slows it. */
export function fromElsewhere(): { 'x-forwarded-for': string } {
  return { 'x-forwarded-for': `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}` };
}
