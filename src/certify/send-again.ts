import type { SettingsKeys } from '../core/locations/settings-key.ts';
import type { Location } from '../core/locations/locations.ts';
import { findWebhook, readWebhook, type StoredWebhook } from '../core/replay/stored-webhook.ts';
import type { Pool } from 'pg';
import type { Certified } from './certified.ts';
import { describeWebhook } from './explain-in-vain.ts';
import { postToDoor, type Door } from './post-to-door.ts';

type SendDeps = { pool: Pool; keys: SettingsKeys; door: Door; ours: Set<string> };

/**
 * Sends a webhook of the POS again, byte by byte.
 * @param about.outcomes what may become of it: a duplicate is stale where the order has gone on meanwhile
 */
export async function sendAgain(
  deps: SendDeps,
  webhookId: string,
  { check, outcomes }: { check: string; outcomes: readonly ('duplicate' | 'stale')[] },
): Promise<Certified> {
  const stored = await read(deps, webhookId);
  if (stored === undefined) return { check, state: 'skipped', found: 'the webhook that would be sent again is gone' };
  const request = describeWebhook(stored);
  const answer = await post(deps, stored);
  if (typeof answer === 'string') return unreachable(check, answer);
  const found = `sent again, it was answered ${answer.status} ${answer.outcome ?? ''}`.trim();
  if (outcomes.some((outcome) => outcome === answer.outcome)) return { check, state: 'ok', request, found };
  if (answer.outcome === 'dropped') {
    const again = answer.webhookId === undefined ? undefined : await read(deps, answer.webhookId);
    const why = again?.reason ?? 'nothing of it was kept';
    return {
      check,
      state: 'skipped',
      request,
      found: `the POS's webhook cannot be sent again by anybody else: ${why}`,
    };
  }
  return {
    check,
    state: 'failed',
    request,
    found,
    expected: `200 ${outcomes.join(' or ')}`,
    toDo: 'report it: this is a fault of ours, and not of the POS',
  };
}

/** Sends a webhook of the POS with a byte more. */
export async function sendChanged(deps: SendDeps, webhookId: string, location: Location): Promise<Certified> {
  const check = 'bad signature';
  if (!isSigned(location)) {
    const found = 'nothing signs its webhooks: whoever knows their URL can move the orders of this location';
    return { check, state: 'skipped', found };
  }
  const stored = await read(deps, webhookId);
  if (stored === undefined) return { check, state: 'skipped', found: 'the webhook that would be changed is gone' };
  const answer = await post(deps, stored, ' ');
  if (typeof answer === 'string') return unreachable(check, answer);
  const found = `changed by one byte, it was answered ${answer.status} ${answer.outcome ?? ''}`.trim();
  const request = describeWebhook(stored);
  if (answer.outcome === 'dropped') return { check, state: 'ok', request, found };
  const toDo = 'report it: this is a fault of ours, and not of the POS';
  return { check, state: 'failed', request, found, expected: '200 dropped', toDo };
}

function isSigned({ provider: { webhookAuth }, settings }: Location): boolean {
  if (webhookAuth?.kind !== 'signature') return false;
  return webhookAuth.settings.some((name) => (settings as Record<string, unknown>)[name] !== undefined);
}

async function read({ pool, keys }: SendDeps, webhookId: string): Promise<StoredWebhook | undefined> {
  const key = await findWebhook(pool, webhookId);
  return key && readWebhook({ pool, keys }, key);
}

async function post(deps: SendDeps, stored: StoredWebhook, added?: string): ReturnType<typeof postToDoor> {
  const answer = await postToDoor(deps.door, stored, added);
  if (typeof answer !== 'string' && answer.webhookId !== undefined) deps.ours.add(answer.webhookId);
  return answer;
}

function unreachable(check: string, why: string): Certified {
  return {
    check,
    state: 'failed',
    found: `PUBLIC_URL could not be reached from here: ${why}`,
    expected: 'an answer of the service',
    toDo: 'run it where PUBLIC_URL can be reached',
  };
}
