import { NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import type { Credentials, Grant } from '../../../src/core/domain/provider.ts';

/** Stores grants as the service does, for one process and one test. */
export function inMemoryCredentials(now: () => Date): Credentials {
  const kept = new Map<string, Grant & { at: number; until: number }>();
  return {
    async accessToken({ seed, obtain, rejected, maxAgeS = Infinity }) {
      const key = JSON.stringify(seed);
      const known = kept.get(key);
      const isYoung = known !== undefined && now().getTime() - known.at <= maxAgeS * 1000;
      if (known !== undefined && known.until > now().getTime() && isYoung && known.accessToken !== rejected) {
        return known.accessToken;
      }
      let grant: Grant;
      try {
        grant = await obtain(known?.refreshToken, AbortSignal.timeout(8_000));
      } catch (error) {
        throw error instanceof NeedsOperator ? error : notSent(error);
      }
      kept.set(key, {
        ...grant,
        refreshToken: grant.refreshToken ?? known?.refreshToken,
        at: now().getTime(),
        until: now().getTime() + grant.expiresIn * 1000,
      });
      return grant.accessToken;
    },
  };
}

/** The order was not sent, whatever the result of the token request. */
function notSent(error: unknown): TryAgain {
  const { retryAfterMs, httpStatus } = error instanceof TryAgain ? error : {};
  const message = error instanceof Error ? error.message : String(error);
  return new TryAgain(message, { sent: false, retryAfterMs, httpStatus });
}
