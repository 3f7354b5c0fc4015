import { startPos } from '../../world/pos/start-pos.ts';
import { setUpLocation } from './set-up-location.ts';

/** A location whose kitchen accepts orders and reports nothing. The developer sends its webhooks by hand. */
export const BY_HAND = 'demo-by-hand';

/** Sets up BY_HAND without a secret: webhooks need no signature. @returns its webhook URL, and how to end its POS */
export async function setUpByHand(about: {
  databaseUrl: string;
  settingsKey: string;
  publicUrl: string;
}): Promise<{ webhookUrl: string; stop(): Promise<void> }> {
  const pos = await startPos();
  const settings = { ordersUrl: pos.ordersUrl, unsigned: true };
  const location = { ...about, locationId: BY_HAND, integration: 'standard', settings };
  const webhookUrl = await setUpLocation(location).catch(async (error: unknown) => {
    await pos.stop();
    throw error;
  });
  return { webhookUrl, stop: () => pos.stop() };
}
