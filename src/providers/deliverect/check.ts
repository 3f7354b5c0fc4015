import type { PosContext } from '../../core/domain/provider.ts';
import { tokenOf } from './obtain-token.ts';
import type { Settings } from './payloads.ts';

/**
 * Obtains a token, which proves the credentials and the environment. The Channel API documents no read at all, so that
 * channelName and channelLinkId show with the first order.
 *
 * A kept token was granted hours ago perhaps, so it is passed off as refused: then a fresh one comes, once a minute for
 * all locations that share it. Deliverect asks not to be asked more often than that.
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<void> {
  const grant = tokenOf(context);
  const rejected = await context.credentials.accessToken(grant);
  await context.credentials.accessToken({ ...grant, rejected });
}
