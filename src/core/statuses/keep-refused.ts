import type { ArrivedWebhook, Drop } from '../domain/webhook.ts';
import type { OldToken } from '../locations/webhook-tokens.ts';
import type { BatchWebhooks } from './batch-webhooks.ts';
import { keepArrived, type KeepDeps } from './keep-arrived.ts';

/** Bytes that are kept for a location and day of what was refused for its old tokens. */
export const REFUSED_QUOTA = 16 * 2 ** 20;
/** Time for its commit. Nobody waits: it was answered before. */
const COMMIT_MS = 5_000;
/** Without the location's settings, nothing says which headers are the provider's: they are sealed like the others. */
const NO_PROVIDER = {};

/** @returns the id under which it is kept; null if its location's quota is spent. @throws if it is not kept in time */
export type KeepRefused = (arrived: ArrivedWebhook, old: OldToken) => Promise<string | null>;

/**
 * Keeps webhooks that were answered 401 for a token that was issued once: dropped, whole, so that a replay verifies them
 * once somebody has decided that they are the POS's.
 * @param deps.quota apart from that of the location's other drops, as `accept` is from its other webhooks: who has only
 *   a token that was revoked must take nothing from those who have a valid one
 */
export function refusedKeeper(deps: KeepDeps & { accept: BatchWebhooks['accept'] }): KeepRefused {
  return async (arrived, { state, tokenId }) => {
    const deadline = Date.now() + COMMIT_MS;
    const dropped: Drop = {
      reason: `refused: old token, ${state}`,
      cause: { code: 'old_token', state, tokenId },
      unproven: true,
    };
    const webhook = await keepArrived(arrived, NO_PROVIDER, { events: [], dropped }, deadline, deps);
    if (webhook.id !== null) await deps.accept(webhook, deadline);
    return webhook.id;
  };
}
