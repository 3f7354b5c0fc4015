import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { webhookUrl } from '../core/domain/paths.ts';
import type { Location } from '../core/locations/locations.ts';
import type { SettingsKeys } from '../core/locations/settings-key.ts';
import { findWebhook, readWebhook, type StoredWebhook } from '../core/replay/stored-webhook.ts';
import { askHttp } from './ask-http.ts';
import { failed, ok, skipped, type Check } from './check.ts';
import { describeWebhook } from './explain-in-vain.ts';

/** Headers that belong to the connection and not to the webhook. They are not sent again. */
const OF_THE_CONNECTION = ['host', 'content-length'];
const OUR_FAULT = 'report it: this is a fault of Expediter, not of the POS';

export type Endpoint = { publicUrl: string; integration: string; locationId: string; token: string };

type Answer = { status: number; outcome: string | undefined; webhookId: string | undefined };

/** `ours` are the ids of the webhooks that certify itself sent. */
type SendDeps = { pool: Pool; keys: SettingsKeys; endpoint: Endpoint; ours: Set<string> };

/** How a webhook of the POS is sent again, and the outcomes that are right then. `added`: bytes after its body. */
type Repeat = { check: string; did: string; right: readonly string[]; added?: string };

/** The outcome is `stale` if the order has a higher status by now. */
export const DUPLICATE: Repeat = { check: 'duplicate', did: 'sent again', right: ['duplicate', 'stale'] };
export const LATE: Repeat = { check: 'late', did: 'sent again', right: ['stale'] };
/** The signature is wrong for the added byte. */
export const CHANGED: Repeat = { check: 'bad signature', did: 'changed by one byte', right: ['dropped'], added: ' ' };

/** Sends a webhook of the POS again, with the same bytes or with one more. */
export async function sendAgain(
  deps: SendDeps,
  webhookId: string,
  location: Location,
  { check, did, right, added }: Repeat,
): Promise<Check> {
  if (added !== undefined && !isSigned(location)) {
    return skipped(
      check,
      'its webhooks are not signed: anyone who knows their URL can change the orders of this location',
    );
  }
  const stored = await read(deps, webhookId);
  if (stored === undefined) return skipped(check, 'the webhook to send again is no longer stored');
  const answer = await postWebhook(deps.endpoint, stored, added);
  if (typeof answer === 'string') {
    const found = `PUBLIC_URL could not be reached from here: ${answer}`;
    return failed(check, found, 'run it where PUBLIC_URL can be reached', { expected: 'an answer from the service' });
  }
  const { status, outcome = '', webhookId: id } = answer;
  if (id !== undefined) deps.ours.add(id);
  const request = describeWebhook(stored, location);
  const found = `${did}, it was answered ${status} ${outcome}`.trim();
  if (right.includes(outcome)) return ok(check, found, { request });
  if (outcome === 'dropped') {
    const why = (id === undefined ? undefined : await read(deps, id))?.reason ?? 'it was not stored';
    return skipped(check, `only the POS itself can send its webhook again: ${why}`, { request });
  }
  return failed(check, found, OUR_FAULT, { request, expected: `200 ${right.join(' or ')}` });
}

function isSigned({ provider: { webhookAuth }, settings }: Location): boolean {
  if (webhookAuth?.kind !== 'signature') return false;
  return webhookAuth.settings.some((name) => (settings as Record<string, unknown>)[name] !== undefined);
}

async function read({ pool, keys }: SendDeps, webhookId: string): Promise<StoredWebhook | undefined> {
  const key = await findWebhook(pool, webhookId);
  return key && readWebhook({ pool, keys }, key);
}

/** How often a webhook is sent again that was answered 500, as a POS does: Postgres may have been slow. */
const AGAIN_MAX = 3;
const AGAIN_MS = 500;

/**
 * Posts a webhook of the POS to PUBLIC_URL, as the POS did, and again after a 500.
 * @param added bytes to append to the body
 * @returns the answer, or why there is none
 */
export async function postWebhook(...about: Parameters<typeof postOnce>): Promise<Answer | string> {
  let answer = await postOnce(...about);
  for (let again = 0; again < AGAIN_MAX && typeof answer !== 'string' && answer.status === 500; again += 1) {
    await sleep(AGAIN_MS);
    answer = await postOnce(...about);
  }
  return answer;
}

async function postOnce(
  endpoint: Endpoint,
  webhook: Pick<StoredWebhook, 'headers' | 'secrets' | 'body'>,
  added = '',
): Promise<Answer | string> {
  const headers = Object.entries({ ...webhook.headers, ...webhook.secrets?.headers });
  const answer = await askHttp(webhookUrl(endpoint.publicUrl, endpoint), {
    method: 'POST',
    headers: headers.filter(([name]) => !OF_THE_CONNECTION.includes(name)),
    body: new Uint8Array(Buffer.concat([webhook.body, Buffer.from(added)])),
  });
  if (typeof answer === 'string') return answer;
  const { outcome, webhookId } = (answer.json ?? {}) as Partial<Record<string, unknown>>;
  return {
    status: answer.status,
    outcome: typeof outcome === 'string' ? outcome : undefined,
    webhookId: typeof webhookId === 'string' ? webhookId : undefined,
  };
}
