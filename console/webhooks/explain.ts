import * as explain from '../../src/core/domain/explain-webhook.ts';
import { vendorName } from '../parts/names.ts';
import type { ShownWebhook } from '../wire.ts';

/** The explanations with the names of vendors. */
export const explainDrop: typeof explain.explainDrop = (said, about) =>
  explain.explainDrop(said, { ...about, vendorName });
export const explainRefusal: typeof explain.explainRefusal = (said, about) =>
  explain.explainRefusal(said, { ...about, vendorName });

/** The names of the settings that can verify a webhook. */
export function settingsThatVerify({ webhookAuth, cause }: Pick<ShownWebhook, 'webhookAuth' | 'cause'>): unknown[] {
  return [webhookAuth?.settings, webhookAuth?.previousSetting, webhookAuth?.urlSetting, cause];
}
