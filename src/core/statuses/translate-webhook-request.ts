import { z } from 'zod';
import { type ArrivedWebhook, KitchenReport, type Drop, type Translated } from '../domain/webhook.ts';
import { toCauseText } from '../domain/cause-text.ts';
import { NotAuthentic, Poison } from '../domain/errors.ts';
import { describeIssues, StatusEvent } from '../domain/order.ts';
import type { Provider, Webhook } from '../domain/provider.ts';
import { shapeIssues } from '../domain/shape-issues.ts';
import { DropCause } from '../domain/webhook-cause.ts';
import { couldBeToken } from '../locations/describe-settings.ts';
import { hideSecrets, secretsOf } from '../locations/hide-secrets.ts';

/** Maximum number of events in a webhook. No POS sends more at once, and thousands would delay all other commits. */
const MAX_EVENTS = 50;

const Events = z.compile(z.array(StatusEvent));

/**
 * Lets the provider verify and translate a webhook. If that fails, the webhook is dropped with a reason that contains
 * no value of the payload.
 */
export function verifyAndTranslate(
  provider: Provider,
  settings: unknown,
  webhook: Webhook,
  secrets = secretsOf(provider, settings),
): Translated {
  try {
    const events = provider.translateWebhook(webhook, settings);
    if (events instanceof Promise) {
      // An unhandled rejection would end the process.
      events.catch(() => {});
      throw new TypeError('translateWebhook must not be async');
    }
    const translated = checkEvents(hideSecrets(events, secrets));
    if (translated.length > 0) return { events: translated };
    const verified = { ...webhook, verified: true };
    return {
      events: [],
      kitchen: checkReport(provider.readKitchen?.(verified, settings)),
      revokedAt: provider.authorisation?.readRevoked?.(verified, settings),
    };
  } catch (error) {
    const { reason, ...drop } = hideSecrets(explainDrop(error), secrets);
    return { events: [], dropped: { ...drop, reason: toCauseText(reason + hintOf(webhook)) } };
  }
}

/** @throws Poison if `events` is not a list of events that can be stored */
export function checkEvents(events: unknown): StatusEvent[] {
  const count = Array.isArray(events) ? events.length : 0;
  if (count > MAX_EVENTS) {
    throw new Poison(`value: holds ${count} events, at most ${MAX_EVENTS} are allowed`, {
      cause: { code: 'too_many_events', count, limit: MAX_EVENTS },
    });
  }
  return asPoison(Events.safeParse(events, { reportInput: true }));
}

const checkReport = (report: KitchenReport | undefined): KitchenReport | undefined =>
  asPoison(KitchenReport.optional().safeParse(report, { reportInput: true }));

function asPoison<Value>(result: z.ZodSafeParseResult<Value>): Value {
  if (result.success) return result.data;
  throw new Poison(describeIssues(result.error), {
    cause: { code: 'wrong_shape', issues: shapeIssues(result.error) },
  });
}

/** What cures a body in a form that no provider reads, whichever error it led to. */
function hintOf({ body }: Webhook): string {
  if (body[0] === 0x1f && body[1] === 0x8b) return '. The body is compressed by gzip: send it as it is';
  const isUtf16 =
    body.length > 3 && (body[0] === 0 || body[1] === 0 || /^(?:fffe|feff)/.test(body.toString('hex', 0, 2)));
  return isUtf16 ? '. The body looks like UTF-16: send UTF-8' : '';
}

/** Converts an error of any provider to a drop whose reason Postgres can store. */
function explainDrop(error: unknown): Drop {
  if (error instanceof NotAuthentic) {
    return { ...dropOf('not authentic', error, { code: 'not_authentic' }), unproven: true };
  }
  if (error instanceof Poison) return dropOf('unreadable', error, { code: 'unreadable' });
  const name = toCauseText(error instanceof Error ? error.name : typeof error);
  // The translator may have failed before it verified the sender, so the sender is not proven.
  return {
    reason: `the translator failed: ${name}`,
    cause: { code: 'translator_failed', error: name },
    unproven: true,
  };
}

/** @param general the cause that is used if the error has no known cause */
function dropOf(what: string, error: Error, general: DropCause): Drop {
  return {
    reason: toCauseText(`${what}: ${error.message}`),
    cause: DropCause.safeParse(error.cause).data ?? general,
  };
}

export type TranslateRules = {
  /** The public base URL, without a trailing slash. Some vendors sign the URL that they call. */
  publicUrl: string;
  bodyLimit: number;
};

/** Lets the provider verify and translate a webhook from the endpoint or from the spill. */
export function translateArrived(
  arrived: ArrivedWebhook,
  { provider, settings }: { provider: Provider; settings: unknown },
  { publicUrl, bodyLimit }: TranslateRules,
): Translated {
  const { headers, body, target, receivedAt, truncated } = arrived;
  const secrets = secretsOf(provider, settings);
  // A body with a secret is stored encrypted.
  // guard: body-with-secret
  const found = secrets.filter((secret) => couldBeToken(secret) && body.includes(secret));
  const held = found.length > 0 ? found : undefined;
  if (truncated) return { events: [], dropped: tooLarge(bodyLimit), held };
  const webhook = { headers, body, url: publicUrl + target, receivedAt, verified: false };
  return { ...verifyAndTranslate(provider, settings, webhook, secrets), held };
}

function tooLarge(limit: number): Drop {
  return {
    reason: `over ${limit} bytes; only the beginning is stored`,
    cause: { code: 'too_large', limit },
    // A signature covers the whole body, so a part of the body cannot be verified.
    unproven: true,
  };
}
