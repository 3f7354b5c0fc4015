import type { PosContext } from '../../core/domain/provider.ts';
import { grantSeed, secondsUntil, tokenOf } from './obtain-token.ts';
import type { Settings } from './payloads.ts';
import { tokenScopes } from './token-scopes.ts';

const DAY_S = 86_400;
/** Seconds after which the next daily call renews a token, so that none gets older than the seven days of Square's advice. */
const MAX_AGE_S = 5.5 * DAY_S;
/** Seconds until a token without an end is asked for again. */
const ENDLESS_S = 30 * DAY_S;

/**
 * Renews the seller's token, which lives for 30 days, every six days: "every 7 days or less", says
 * https://developer.squareup.com/docs/oauth-api/refresh-revoke-limit-scope (read in November 2026). Of an `accessToken`,
 * which cannot be renewed, it asks only how long it lives.
 */
export async function renewConnection(context: PosContext<Settings>): Promise<void> {
  const { credentials, settings, now } = context;
  const { accessToken } = settings;
  if (accessToken === undefined) {
    await credentials.accessToken({ ...tokenOf(context), maxAgeS: MAX_AGE_S });
    return;
  }
  await credentials.accessToken({
    seed: grantSeed(settings) ?? {},
    async obtain(_none, signal) {
      const { expiresAt } = await tokenScopes({ ...context, signal });
      if (expiresAt === undefined) return { accessToken, expiresIn: ENDLESS_S };
      const expiresIn = secondsUntil(expiresAt, now);
      return { accessToken, expiresIn, lastsS: expiresIn };
    },
    maxAgeS: DAY_S / 2,
  });
}
