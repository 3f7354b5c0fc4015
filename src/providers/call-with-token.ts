import { NeedsOperator } from '../core/domain/errors.ts';
import type { Credentials } from '../core/domain/provider.ts';
import type { PosAnswer } from './call-pos.ts';

/**
 * Makes a call with an access token, and once more with a fresh one when the POS refuses the first: it may have been
 * revoked before its time.
 * @throws as `callPos` and `Credentials` do; NeedsOperator when the fresh one is refused as well
 */
export async function callWithToken(
  credentials: Credentials,
  grant: Parameters<Credentials['accessToken']>[0],
  call: (accessToken: string) => Promise<PosAnswer>,
): Promise<PosAnswer> {
  const accessToken = await credentials.accessToken(grant);
  try {
    return await call(accessToken);
  } catch (error) {
    if (!(error instanceof NeedsOperator && error.httpStatus === 401)) throw error;
    const fresh = await credentials.accessToken({ ...grant, rejected: accessToken });
    if (fresh === accessToken) throw error;
    return call(fresh);
  }
}
