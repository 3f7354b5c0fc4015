import { z } from 'zod';
import { NotAuthentic, Poison } from '../domain/errors.ts';
import { StatusEvent, describeIssues } from '../domain/order.ts';
import type { Provider, Webhook } from '../domain/provider.ts';

/** More than any POS sends at once; a payload with thousands would hold up everybody else's commit. */
const MAX_EVENTS = 50;
const REASON_MAX = 500;

const Events = z.array(StatusEvent).max(MAX_EVENTS, {
  error: (issue) => `holds ${(issue.input as unknown[]).length} events, at most ${MAX_EVENTS} pass`,
});

/**
 * Lets the provider verify and translate a webhook. Whatever goes wrong in it becomes the reason why the webhook is
 * dropped, without any value of the payload.
 */
export function verifyAndTranslate(
  provider: Provider,
  settings: unknown,
  webhook: Webhook,
): { events: readonly StatusEvent[]; dropped?: undefined } | { events: readonly []; dropped: string } {
  let events: readonly StatusEvent[];
  try {
    events = provider.translateWebhook(webhook, settings);
    if (events instanceof Promise) {
      // Unheard, its rejection would end the process.
      events.catch(() => {});
      throw new TypeError('translateWebhook must not be async');
    }
  } catch (error) {
    return { events: [], dropped: whyDropped(error) };
  }
  const checked = Events.safeParse(events);
  if (!checked.success) return { events: [], dropped: whyDropped(new Poison(describeIssues(checked.error))) };
  return { events: checked.data };
}

/** What Postgres can hold, whatever a provider puts into its message. */
function whyDropped(error: unknown): string {
  return describe(error).replaceAll('\0', '').toWellFormed().slice(0, REASON_MAX).toWellFormed();
}

function describe(error: unknown): string {
  if (error instanceof NotAuthentic) return `not authentic: ${error.message}`;
  if (error instanceof Poison) return `unreadable: ${error.message}`;
  return `the translator failed: ${error instanceof Error ? error.name : typeof error}`;
}
