import type { Credentials, Grant } from '../../src/core/provider.ts';

/** Keeps what is granted as the service does, for one process and one test. */
export function keepCredentials(now: () => Date): Credentials {
  const kept = new Map<string, Grant & { until: number }>();
  return {
    async accessToken({ seed, obtain, rejected }) {
      const key = JSON.stringify(seed);
      const known = kept.get(key);
      if (known !== undefined && known.until > now().getTime() && known.accessToken !== rejected) {
        return known.accessToken;
      }
      const grant = await obtain(known?.refreshToken, AbortSignal.timeout(8_000));
      kept.set(key, {
        ...grant,
        refreshToken: grant.refreshToken ?? known?.refreshToken,
        until: now().getTime() + grant.expiresIn * 1000,
      });
      return grant.accessToken;
    },
  };
}
