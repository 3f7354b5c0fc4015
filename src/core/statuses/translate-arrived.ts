import type { ArrivedWebhook, Drop, Translated } from '../domain/webhook.ts';
import type { Provider } from '../domain/provider.ts';
import { verifyAndTranslate } from './verify-and-translate.ts';

export type TranslateRules = {
  /** The outside base URL, without a slash at its end. Some vendors sign the URL that they call. */
  publicUrl: string;
  bodyLimit: number;
};

/** Lets the provider verify and translate a webhook that just came, or waited in the spill. */
export function translateArrived(
  arrived: ArrivedWebhook,
  { provider, settings }: { provider: Provider; settings: unknown },
  { publicUrl, bodyLimit }: TranslateRules,
): Translated {
  const { headers, body, target, receivedAt, truncated } = arrived;
  if (truncated) return { events: [], dropped: tooLarge(bodyLimit) };
  return verifyAndTranslate(provider, settings, {
    headers,
    body,
    url: publicUrl + target,
    receivedAt,
    verified: false,
  });
}

function tooLarge(limit: number): Drop {
  return {
    reason: `over ${limit} bytes; the beginning is kept`,
    cause: { code: 'too_large', limit },
    // A signature covers the whole.
    unproven: true,
  };
}
