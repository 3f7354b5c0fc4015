import type { Pool } from 'pg';
import { z } from 'zod';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { Credentials, PosContext } from '../domain/provider.ts';
import { withTimeout } from '../domain/timing.ts';
import type { Now } from '../postgres/database-clock.ts';
import { getLocation, type Location, type OpenSettings, refuseHosts, WrongLocation } from './locations.ts';
import { describeError } from '../domain/classify-error.ts';
import type { AllowedHosts } from '../egress/allowed-hosts.ts';

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

export type LocationDeps = PosDeps & { pool: Pool; open: OpenSettings; allowedHosts: AllowedHosts };

/** The result of a check. Sentences are for the operator, without secrets. */
export const CheckedLocation = z
  .discriminatedUnion('state', [
    z.object({
      locationId: z.string(),
      state: z.literal('ok'),
      now: z.string().exactOptional().meta({
        description: 'What the POS says of this moment and no setting changes; some POS systems say nothing.',
      }),
    }),
    z.object({
      locationId: z.string(),
      state: z.literal('unchecked'),
      why: z.string().meta({ description: 'Its POS has no call for it, so it was not asked.' }),
    }),
    z.object({ locationId: z.string(), state: z.literal('failed'), problem: z.string(), toDo: z.string() }),
  ])
  .meta({ id: 'CheckedLocation' });
export type CheckedLocation = z.infer<typeof CheckedLocation>;

/**
 * Asks a location's POS whether the settings reach it, without changing anything there. Paused locations too.
 * @param withinMs time for all its calls together: an operator waits
 * @throws WrongLocation if there is no such location
 */
export async function checkLocation(
  deps: LocationDeps,
  locationId: string,
  withinMs: number,
): Promise<CheckedLocation> {
  const { pool, open } = deps;
  const location = await getLocation(pool, locationId);
  const { integration } = location;
  try {
    const { provider, settings } = await open(location);
    refuseHosts(settings, provider, deps.allowedHosts);
    if (provider.check === undefined) {
      const why = `${integration} knows no call that would prove it; the first order will tell`;
      return { locationId, state: 'unchecked', why };
    }
    const limit = { seconds: withinMs / 1_000, sent: false };
    const said = await askPos(deps, { integration, settings }, limit, async (context) => provider.check?.(context));
    return { locationId, state: 'ok', ...(typeof said === 'string' && { now: said }) };
  } catch (error) {
    return { locationId, state: 'failed', ...explain(error, locationId) };
  }
}

function explain(error: unknown, locationId: string): { problem: string; toDo: string } {
  if (error instanceof WrongLocation) {
    return {
      problem: error.message,
      toDo:
        'give this process the SETTINGS_KEY, PUBLIC_URL, PROVIDER_MODULES and ALLOW_PRIVATE_HOSTS that the service has, ' +
        `or put the settings again: expediter location put --location ${locationId}`,
    };
  }
  if (error instanceof TryAgain) {
    const wait = error.retryAfterMs === undefined ? 'a minute' : `${Math.ceil(error.retryAfterMs / 1000)} s`;
    return {
      problem: `the POS could not be reached: ${error.message}`,
      toDo: `check again in ${wait}; if it stays so, see whether the POS is up and whether the address is right`,
    };
  }
  if (error instanceof NeedsOperator || error instanceof GiveUp) {
    return {
      problem: error.message,
      toDo: `mend it at the POS, or in the settings: expediter location put --location ${locationId}`,
    };
  }
  return { problem: describeError(error), toDo: 'report it: this is a fault in the provider, not in the settings' };
}
