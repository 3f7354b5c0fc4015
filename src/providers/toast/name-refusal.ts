import type { PosAnswer } from '../call-pos.ts';
import { ErrorMessage } from './payloads.ts';

/** A refusal's status with Toast's code and `requestId`, which its support asks for. Its words may quote the member. */
export function nameRefusal({ status, json }: PosAnswer): string {
  const { code, requestId } = ErrorMessage.safeParse(json).data ?? {};
  return [status, code && `code ${code}`, requestId && `requestId ${requestId}`].filter(Boolean).join(', ');
}
