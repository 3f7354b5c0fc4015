import { withTimeout } from '../domain/timing.ts';
import type { SettingsKeys } from '../locations/settings-key.ts';
import { sealSpilled, type SpilledWebhook } from './seal-spilled.ts';

/**
 * Puts a webhook into the spill, sealed.
 * @param about.take counts the sealed bytes, and throws if there is no room for them
 * @param about.deadline in milliseconds since the epoch
 */
export type SpillWebhook = (
  spilled: SpilledWebhook,
  about: { take: (bytes: number) => void; deadline: number },
) => Promise<void>;

const late = (): Error => new Error('Pub/Sub did not acknowledge it in time');

/** @param deps.publish resolves once the message is durable */
export function webhookSpiller(deps: { keys: SettingsKeys; publish: (data: Buffer) => Promise<void> }): SpillWebhook {
  return async (spilled, { take, deadline }) => {
    const data = await sealSpilled(deps.keys, spilled);
    take(data.length);
    // guard: answered-when-out
    await withTimeout(deadline - Date.now(), () => deps.publish(data), late);
  };
}
