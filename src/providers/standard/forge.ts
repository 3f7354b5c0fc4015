import { randomBytes } from 'node:crypto';
import type { Settings } from './payloads.ts';

/** Makes settings that order by a secret that nobody has. @returns undefined where nothing is signed */
export function forge({ ordersUrl, secret }: Settings): Settings | undefined {
  if (secret === undefined) return undefined;
  return { ordersUrl, secret: `whsec_${randomBytes(32).toString('base64')}` };
}
