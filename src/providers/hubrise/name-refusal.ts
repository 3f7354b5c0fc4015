import type { PosAnswer } from '../call-pos.ts';
import { Refusal } from './payloads.ts';

/** The most fields named. An operator knows then where to look. */
const FIELDS_MAX = 10;

/** Names the status, HubRise's error type and the fields. Never its messages: they quote values. */
export function nameRefusal({ status, json }: Pick<PosAnswer, 'status' | 'json'>): string {
  const { error_type: type = '', errors = [] } = Refusal.safeParse(json).data ?? {};
  const fields = errors.map(({ field }) => field).filter((field) => /^[\w.[\]]{1,60}$/.test(field));
  return [
    status,
    ...(/^[a-z_]{1,60}$/.test(type) ? [type] : []),
    ...(fields.length > 0 ? [`(${fields.slice(0, FIELDS_MAX).join(', ')})`] : []),
  ].join(' ');
}
