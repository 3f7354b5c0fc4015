import { NeedsOperator } from '../core/domain/errors.ts';
import type { Credentials } from '../core/domain/provider.ts';
import type { PosAnswer } from './call-pos.ts';

/**
 * Calls with an access token. If the POS refuses the token, it may have been revoked early, so the call is made once
 * more with a fresh one.
 * @throws as `callPos` and `Credentials` do; NeedsOperator if the fresh token is refused as well
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
