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
  /** The outside base URL, without a slash at its end: some vendors sign the URL they call. */
  publicUrl: string;
};

/** What today's settings and today's translator make of a kept webhook. */
export type Retranslated = { events: readonly StatusEvent[]; dropped?: Drop | undefined };

const Sealed = z.object({
  authorization: z.string().exactOptional(),
  cookie: z.string().exactOptional(),
  target: z.string(),
});

/**
 * Translates a kept webhook anew, and changes nothing. What it is verified with is kept of one that may not have
 * verified, so that is done now, by the clock of when the webhook came. Any other verified when it came, and does not
 * keep what that took, even where it was dropped after all: Postgres refused it, or a replay could not read it.
 * @returns why it cannot be, where that is so
 */
export async function retranslate(deps: RetranslateDeps, kept: StoredWebhook): Promise<Retranslated | Refusal> {
  if (kept.truncated) {
    return {
      refused: 'only its beginning is kept: it was over WEBHOOK_BODY_LIMIT',
      cause: { code: 'only_beginning_kept' },
    };
  }
  if (kept.erased) {
    return { refused: 'its body was erased with the member data of its order', cause: { code: 'erased' } };
  }

  const location = await findLocation(deps.pool, kept.locationId);
  if (location === undefined) {
    return { refused: `there is no location "${kept.locationId}" any more`, cause: { code: 'no_location' } };
  }
  const { integration } = location;
  if (integration !== kept.integration) {
    return {
      refused: `it came through "${kept.integration}", and "${kept.locationId}" is served by "${integration}" now`,
      cause: { code: 'other_integration', integration: toCauseText(integration) },
    };
  }

  const opened = await orRefused(deps.open(integration, location.sealedSettings));
  if ('refused' in opened) return opened;
  const secrets = kept.sealed === null ? undefined : await orRefused(unsealed(deps.keys, kept.sealed));
  if (secrets !== undefined && 'refused' in secrets) return secrets;

  const { target = webhookPath(kept), ...credentials } = secrets ?? {};
  return verifyAndTranslate(opened.provider, opened.settings, {
    headers: { ...kept.headers, ...credentials },
    body: kept.body,
    url: deps.publicUrl + target,
    receivedAt: kept.firstReceivedAt,
    verified: kept.sealed === null,
  });
}

/** No message of these says more than a name: of a field, or of a key's id. */
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
