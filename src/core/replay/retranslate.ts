import { webhookPath } from '../domain/make-token.ts';
import type { Pool } from 'pg';
import type { Refusal, StoredWebhook } from './stored-webhook.ts';
import { WrongLocation, findLocation, type OpenSettings } from '../locations/locations.ts';
import { toCauseText } from '../domain/cause-text.ts';
import type { Translated } from '../domain/webhook.ts';
import type { SettingsKeys } from '../locations/settings-key.ts';
import { checkEvents, verifyAndTranslate } from '../statuses/translate-webhook-request.ts';

export type RetranslateDeps = {
  pool: Pool;
  open: OpenSettings;
  keys: SettingsKeys;
  /** The outside base URL, without a slash at its end. Some vendors sign the URL that they call. */
  publicUrl: string;
};

/**
 * Translates a stored webhook again, without changes. A webhook that failed verification has its target and all its
 * headers stored, and is verified now, by the clock of its arrival. Any other was verified then and has neither, even if
 * it was dropped: Postgres refused it, or a replay could not read it.
 * @returns what it says by today's settings and code, or why it cannot be translated
 */
export async function retranslate(deps: RetranslateDeps, stored: StoredWebhook): Promise<Translated | Refusal> {
  if (stored.truncated) {
    return {
      refused: 'only its beginning is kept: it was over WEBHOOK_BODY_LIMIT, or beyond DROPPED_QUOTA',
      cause: { code: 'only_beginning_stored' },
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

  const opened = await orRefused(deps.open(location));
  if ('refused' in opened) return opened;
  if (stored.locked !== undefined) return stored.locked;
  if (stored.polled) return { events: checkEvents(JSON.parse(stored.body.toString())) };

  const { target, headers, body: _body, ...credentials } = stored.secrets ?? { target: '' };
  return verifyAndTranslate(opened.provider, opened.settings, {
    headers: { ...stored.headers, ...headers, ...credentials },
    body: stored.body,
    url: deps.publicUrl + (target || webhookPath(stored)),
    receivedAt: stored.firstReceivedAt,
    verified: target === '',
  });
}

/** Catches errors whose messages name at most a field or a key's id. */
async function orRefused<Value extends object>(work: Promise<Value>): Promise<Value | Refusal> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof WrongLocation) || error.cause === undefined) throw error;
    return { refused: error.message, cause: error.cause };
  }
}
