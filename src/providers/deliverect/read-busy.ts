import type { Busy } from '../../core/domain/webhook.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import { parseJson } from '../parse-json.ts';
import { BusyMode, type Settings } from './payloads.ts';

/**
 * Reads a store's busy mode. Deliverect wants the status back once it is so. Its other webhooks, such as menus, look
 * different.
 * @throws Poison
 */
export function readBusy({ body, receivedAt }: Webhook, settings: Settings): Busy | undefined {
  const said = BusyMode.safeParse(parseJson(body, 'an object with channelLinkId and status')).data;
  if (said?.channelLinkId !== settings.channelLinkId) return undefined;
  const { status } = said;
  const isPaused = status === 'PAUSED';
  const end = new Date(receivedAt.getTime() + settings.pauseMinutes * 60_000);
  return { pausedUntil: isPaused ? end : null, answer: { status } };
}
