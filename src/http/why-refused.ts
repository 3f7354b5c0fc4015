import { CannotVerify } from './issuer-keys.ts';

/**
 * Says why jose refuses a token, without any value of it: its messages name claims and headers, but for `crit` the names
 * are values.
 * @throws CannotVerify if the error is one, which says nothing of the token
 */
export function whyRefused(error: unknown): string {
  if (error instanceof CannotVerify) throw error;
  if (!(error instanceof Error)) return 'unknown';
  if (error.message.startsWith('Extension Header Parameter')) return 'crit names what is not supported';
  return error.message;
}
