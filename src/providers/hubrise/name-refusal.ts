import type { PosAnswer } from '../call-pos.ts';
import { Refusal } from './payloads.ts';

/** Enough for an operator to know where to look. */
const FIELDS_MAX = 10;

/** The status, HubRise's own word and the fields it names; never its messages, which quote values. */
export function nameRefusal({ status, json }: Pick<PosAnswer, 'status' | 'json'>): string {
  const { error_type: type = '', errors = [] } = Refusal.safeParse(json).data ?? {};
  const fields = errors.map(({ field }) => field).filter((field) => /^[\w.[\]]{1,60}$/.test(field));
  return [
    status,
    ...(/^[a-z_]{1,60}$/.test(type) ? [type] : []),
    ...(fields.length > 0 ? [`(${fields.slice(0, FIELDS_MAX).join(', ')})`] : []),
  ].join(' ');
}
