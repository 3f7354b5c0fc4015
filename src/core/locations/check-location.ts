import type { Pool } from 'pg';
import { z } from 'zod';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { Credentials, PosContext } from '../domain/provider.ts';
import { withTimeout } from '../domain/timing.ts';
import type { Now } from '../postgres/database-clock.ts';
import { getLocation, type Location, type DecryptSettings, refuseHosts, WrongLocation } from './locations.ts';
import { classifyError, describeError } from '../domain/classify-error.ts';
import { helpWith } from '../domain/explain-cause.ts';
import { inOneLine, type Place } from '../domain/remedy.ts';
import type { AllowedHosts } from '../egress/allowed-hosts.ts';
import { hideSecrets, noteTokens, secretsOf } from './hide-secrets.ts';

export type PosDeps = {
  now: Now;
  credentialsFor: (integration: string) => Credentials;
  posFetch: typeof fetch;
};

/**
 * Makes one call to a location's POS. Nothing else calls a POS, so that no text of an answer or an error leaves here
 * with a secret of the location or of its grant.
 * @param limit the time limit, and the `sent` of the TryAgain that is thrown after it. `stopping` ends the call early
 * @throws what the call throws; TryAgain if no answer comes in time
 */
export async function askPos<Result>(
  { now, credentialsFor, posFetch }: PosDeps,
  { integration, provider, settings }: Pick<Location, 'integration' | 'provider' | 'settings'>,
  limit: { seconds: number; sent: boolean; stopping?: AbortSignal },
  call: (context: PosContext<unknown>) => Promise<Result>,
): Promise<Result> {
  const { seconds, sent, stopping } = limit;
  const secrets = [...secretsOf(provider, settings)];
  const credentials = noteTokens(credentialsFor(integration), secrets);
  try {
    const result = await withTimeout(
      seconds * 1_000,
      (late) => {
        const signal = stopping === undefined ? late : AbortSignal.any([late, stopping]);
        return call({ settings, signal, now: now(), credentials, fetch: posFetch });
      },
      () => new TryAgain(`no answer in ${seconds} s`, { sent }),
    );
    return hideSecrets(result, secrets);
  } catch (error) {
    throw hideSecrets(error, secrets);
  }
}

export type LocationDeps = PosDeps & { pool: Pool; decryptSettings: DecryptSettings; allowedHosts: AllowedHosts };

/** The result of a check. The operator sees its texts, so they must contain no secret. */
export const CheckedLocation = z
  .discriminatedUnion('state', [
    z.object({
      locationId: z.string(),
      state: z.literal('ok'),
      now: z.string().exactOptional().meta({
        description: 'A temporary condition that the POS reports, if it reports any. No setting changes it.',
      }),
    }),
    z.object({
      locationId: z.string(),
      state: z.literal('unchecked'),
      detail: z.string().meta({ description: 'Its POS has no call that tests the settings, so nothing was checked.' }),
    }),
    z.object({ locationId: z.string(), state: z.literal('failed'), problem: z.string(), toDo: z.string() }),
  ])
  .meta({ id: 'CheckedLocation' });
export type CheckedLocation = z.infer<typeof CheckedLocation>;

/**
 * Checks that a location's settings reach its POS, without changing anything there. Paused locations are checked too.
 * @param withinMs the time limit for all calls together, because an operator waits
 * @throws WrongLocation if there is no such location
 */
export async function checkLocation(
  deps: LocationDeps,
  locationId: string,
  withinMs: number,
): Promise<CheckedLocation> {
  const { pool, decryptSettings } = deps;
  const location = await getLocation(pool, locationId);
  const { integration } = location;
  try {
    const { provider, settings } = await decryptSettings(location);
    refuseHosts(settings, provider, deps.allowedHosts);
    if (provider.check === undefined) {
      const detail = 'this POS has no call that can test the settings; the first order will show if they are right';
      return { locationId, state: 'unchecked', detail };
    }
    const limit = { seconds: withinMs / 1_000, sent: false };
    const said = await askPos(deps, { integration, provider, settings }, limit, async (pos) => provider.check?.(pos));
    return { locationId, state: 'ok', ...(typeof said === 'string' && { now: said }) };
  } catch (error) {
    return { locationId, state: 'failed', ...explain(error, location) };
  }
}

/** What is wrong with the settings or the POS of a location, and what to do. */
export type Unusable = { problem: string; toDo: string };

/** Explains an error that lasts until a person fixes its cause. */
export function explainError(error: WrongLocation | NeedsOperator | GiveUp, at: Place): Unusable {
  const isOurs = error instanceof WrongLocation;
  const { cause } = isOurs ? error : classifyError(error);
  // A POS that refuses a test of its settings does not refuse an order.
  const fixable = cause === undefined || error instanceof GiveUp ? { code: 'pos_set_up_wrong' } : cause;
  const toDo = inOneLine(helpWith(fixable, at));
  return { problem: error.message, toDo: isOurs ? `${SAME_VARIABLES}. ${toDo}` : toDo };
}

const SAME_VARIABLES =
  'Give this process the SETTINGS_KEY, PUBLIC_URL, PROVIDER_MODULES and ALLOW_PRIVATE_HOSTS of the service';

function explain(error: unknown, at: Place): Unusable {
  if (error instanceof TryAgain) {
    const wait = error.retryAfterMs === undefined ? 'a minute' : `${Math.ceil(error.retryAfterMs / 1000)} s`;
    return {
      problem: `the POS could not be reached: ${error.message}`,
      toDo: `check again in ${wait}; if it still fails, check that the POS is up and the address is right`,
    };
  }
  if (error instanceof WrongLocation || error instanceof NeedsOperator || error instanceof GiveUp) {
    return explainError(error, at);
  }
  return { problem: describeError(error), toDo: 'report it: this is a fault in the provider, not in the settings' };
}
