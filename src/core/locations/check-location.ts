import type { Pool } from 'pg';
import { z } from 'zod';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { describeError } from '../domain/classify-error.ts';
import type { AllowedHosts } from '../egress/allowed-hosts.ts';
import { askPos, type PosDeps } from './ask-pos.ts';
import { WrongLocation, getLocation, refuseHosts, type OpenSettings } from './locations.ts';

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
