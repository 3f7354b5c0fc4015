import { z } from 'zod';
import { toCauseText } from '../domain/cause-text.ts';
import { NotAuthentic, Poison } from '../domain/errors.ts';
import { StatusEvent, describeIssues } from '../domain/order.ts';
import type { Provider, Webhook } from '../domain/provider.ts';
import { shapeIssues } from '../domain/shape-issues.ts';
import { DropCause } from '../domain/webhook-cause.ts';
import type { Drop } from '../domain/webhook.ts';

/** More than any POS sends at once; a payload with thousands would hold up everybody else's commit. */
const MAX_EVENTS = 50;

const Events = z.array(StatusEvent);

/**
 * Lets the provider verify and translate a webhook. Whatever goes wrong in it becomes the reason why the webhook is
 * dropped, without any value of the payload.
 */
export function verifyAndTranslate(
  provider: Provider,
  settings: unknown,
  webhook: Webhook,
): { events: readonly StatusEvent[]; dropped?: undefined } | { events: readonly []; dropped: Drop } {
  try {
    const events = provider.translateWebhook(webhook, settings);
    if (events instanceof Promise) {
      // Unheard, its rejection would end the process.
      events.catch(() => {});
      throw new TypeError('translateWebhook must not be async');
    }
    return { events: checked(events) };
  } catch (error) {
    return { events: [], dropped: whyDropped(error) };
  }
}

function checked(events: readonly StatusEvent[]): StatusEvent[] {
  const count = Array.isArray(events) ? events.length : 0;
  if (count > MAX_EVENTS) {
    throw new Poison(`value: holds ${count} events, at most ${MAX_EVENTS} pass`, {
      cause: { code: 'too_many_events', count, limit: MAX_EVENTS },
    });
  }
  const result = Events.safeParse(events, { reportInput: true });
  if (result.success) return result.data;
  throw new Poison(describeIssues(result.error), {
    cause: { code: 'wrong_shape', issues: shapeIssues(result.error) },
  });
}

/** What Postgres can hold, whatever a provider puts into its message. */
function whyDropped(error: unknown): Drop {
  if (error instanceof NotAuthentic) return dropOf('not authentic', error, { code: 'not_authentic' });
  if (error instanceof Poison) return dropOf('unreadable', error, { code: 'unreadable' });
  const name = toCauseText(error instanceof Error ? error.name : typeof error);
  return { reason: `the translator failed: ${name}`, cause: { code: 'translator_failed', error: name } };
}

/** @param general where the provider gave no cause of the list */
function dropOf(what: string, error: Error, general: DropCause): Drop {
  return {
    reason: toCauseText(`${what}: ${error.message}`),
    cause: DropCause.safeParse(error.cause).data ?? general,
  };
}
