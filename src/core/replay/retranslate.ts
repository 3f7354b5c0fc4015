import { webhookPath } from '../domain/webhook-path.ts';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { Refusal, StoredWebhook } from './stored-webhook.ts';
import { WrongLocation, findLocation, type OpenSettings } from '../locations/locations.ts';
import { toCauseText } from '../domain/cause-text.ts';
import type { StatusEvent } from '../domain/order.ts';
import type { ReplayCause } from '../domain/webhook-cause.ts';
import type { Drop } from '../domain/webhook.ts';
import { keyIdOf, unseal, type SettingsKeys } from '../locations/settings-key.ts';
import { verifyAndTranslate } from '../statuses/verify-and-translate.ts';

export type RetranslateDeps = {
  pool: Pool;
  open: OpenSettings;
  keys: SettingsKeys;
  /** The outside base URL, without a slash at its end. Some vendors sign the URL that they call. */
  publicUrl: string;
};

/** The translation of a stored webhook with today's settings and code. */
export type Retranslated = { events: readonly StatusEvent[]; dropped?: Drop | undefined };

const Sealed = z.object({
  authorization: z.string().exactOptional(),
  cookie: z.string().exactOptional(),
  target: z.string(),
});

/**
 * Translates a stored webhook again, without changes. A webhook that failed verification has its credentials stored,
 * and is verified now, by the clock of its arrival. Any other was verified then and has none, even if it was dropped:
 * Postgres refused it, or a replay could not read it.
 * @returns the events, or why it cannot be translated
 */
export async function retranslate(deps: RetranslateDeps, stored: StoredWebhook): Promise<Retranslated | Refusal> {
  if (stored.truncated) {
    return {
      refused: 'only its beginning is kept: it was over WEBHOOK_BODY_LIMIT',
      cause: { code: 'only_beginning_kept' },
    };
  }
  if (stored.erased) {
    return { refused: 'its body was erased with the member data of its order', cause: { code: 'erased' } };
  }

  const location = await findLocation(deps.pool, stored.locationId);
  if (location === undefined) {
    return { refused: `there is no location "${stored.locationId}" any more`, cause: { code: 'no_location' } };
  }
  const { integration } = location;
  if (integration !== stored.integration) {
    return {
      refused: `it came through "${stored.integration}", and "${stored.locationId}" is served by "${integration}" now`,
      cause: { code: 'other_integration', integration: toCauseText(integration) },
    };
  }

  const opened = await orRefused(deps.open(integration, location.sealedSettings));
  if ('refused' in opened) return opened;
  const secrets = stored.sealed === null ? undefined : await orRefused(unsealed(deps.keys, stored.sealed));
  if (secrets !== undefined && 'refused' in secrets) return secrets;

  const { target = webhookPath(stored), ...credentials } = secrets ?? {};
  return verifyAndTranslate(opened.provider, opened.settings, {
    headers: { ...stored.headers, ...credentials },
    body: stored.body,
    url: deps.publicUrl + target,
    receivedAt: stored.firstReceivedAt,
    verified: stored.sealed === null,
  });
}

/** Catches errors whose messages name at most a field or a key's id. */
async function orRefused<Value extends object>(work: Promise<Value>): Promise<Value | Refusal> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof WrongLocation || error instanceof CannotUnseal) || error.cause === undefined) throw error;
    return { refused: error.message, cause: error.cause };
  }
}

class CannotUnseal extends Error {
  override readonly name = 'CannotUnseal';
  declare readonly cause: ReplayCause;
}

async function unsealed(keys: SettingsKeys, sealed: string): Promise<z.infer<typeof Sealed>> {
  const value = await unseal(keys, sealed).catch((error: Error) => {
    const cause: ReplayCause = { code: 'credentials_sealed', keyId: toCauseText(keyIdOf(sealed)) };
    throw new CannotUnseal(`what it is verified with cannot be decrypted: ${error.message}`, { cause });
  });
  return Sealed.parse(value);
}
