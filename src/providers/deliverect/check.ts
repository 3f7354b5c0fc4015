import type { PosContext } from '../../core/domain/provider.ts';
import { tokenOf } from './obtain-token.ts';
import type { Settings } from './payloads.ts';

/**
 * Obtains a token, which proves the credentials and the environment. The Channel API documents no read, so a wrong
 * channelName or channelLinkId shows only with the first order.
 *
 * A stored token may be hours old, so it is reported as refused: then a fresh one is obtained, at most once a minute
 * for all locations that share it. Deliverect asks for no more logins than that.
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<void> {
  const grant = tokenOf(context);
  const rejected = await context.credentials.accessToken(grant);
  await context.credentials.accessToken({ ...grant, rejected });
}
