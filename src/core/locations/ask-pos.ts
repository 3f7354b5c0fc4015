import { TryAgain } from '../domain/errors.ts';
import type { Credentials, PosContext } from '../domain/provider.ts';
import { withTimeout } from '../domain/timing.ts';
import type { Now } from '../postgres/database-clock.ts';
import type { Location } from './locations.ts';

/** What a call to any POS needs. */
export type PosDeps = {
  now: Now;
  credentialsFor: (integration: string) => Credentials;
  /** Asks POS systems. */
  posFetch: typeof fetch;
};

/**
 * Makes one call to a location's POS.
 * @param limit its time; whether the POS may have got what no answer came to; what ends it early
 * @throws what the call throws; TryAgain if no answer comes in time
 */
export async function askPos<Result>(
  { now, credentialsFor, posFetch }: PosDeps,
  { integration, settings }: Pick<Location, 'integration' | 'settings'>,
  limit: { seconds: number; sent: boolean; stopping?: AbortSignal },
  call: (context: PosContext<unknown>) => Promise<Result>,
): Promise<Result> {
  const { seconds, sent, stopping } = limit;
  const credentials = credentialsFor(integration);
  return withTimeout(
    seconds * 1_000,
    (late) => {
      const signal = stopping === undefined ? late : AbortSignal.any([late, stopping]);
      return call({ settings, signal, now: now(), credentials, fetch: posFetch });
    },
    () => new TryAgain(`no answer in ${seconds} s`, { sent }),
  );
}
