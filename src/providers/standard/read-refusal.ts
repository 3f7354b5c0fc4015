import type { GiveUp } from '../../core/domain/errors.ts';
import { Refusal } from './payloads.ts';

/** Characters of a reason. A member reads it: a sentence, not a page. */
const REASON_MAX = 200;

/** Why the POS refuses, as far as it says so. */
export function readRefusal(json: unknown): Partial<Pick<GiveUp, 'reason' | 'reasonCode' | 'itemIds'>> {
  const { reason, ...codes } = Refusal.safeParse(json).data ?? {};
  const text = reason?.replaceAll('\0', '').trim().slice(0, REASON_MAX).toWellFormed();
  return { ...codes, ...(text && { reason: text }) };
}
