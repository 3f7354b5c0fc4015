import { startPos } from '../test/support/start-pos.ts';
import { setUpLocation } from './set-up-location.ts';

/** Where a kitchen takes orders and says nothing: its webhooks are sent by hand. */
export const BY_HAND = 'demo-by-hand';

/** Without a secret nobody asks for a signature. @returns the webhook's URL, and how to end the location's POS */
export async function setUpByHand(about: {
  databaseUrl: string;
  settingsKey: string;
  publicUrl: string;
}): Promise<{ webhookUrl: string; stop(): Promise<void> }> {
  const pos = await startPos();
  const settings = { ordersUrl: pos.ordersUrl };
  const location = { ...about, locationId: BY_HAND, integration: 'standard', settings };
  const webhookUrl = await setUpLocation(location).catch(async (error: unknown) => {
    await pos.stop();
    throw error;
  });
  return { webhookUrl, stop: () => pos.stop() };
}
