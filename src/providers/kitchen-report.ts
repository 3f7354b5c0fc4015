import { z } from 'zod';
import type { KitchenReport } from '../core/domain/webhook.ts';
import { ifAny } from './read-json.ts';

/** Minutes after which a state of the kitchen ends if nobody says when. They cover a meal service. */
const PAUSE_MINUTES = 240;

/** The setting for a POS that may say no end, such as a pause until further notice. */
export function pauseMinutes(minutes = PAUSE_MINUTES) {
  return z
    .int()
    .min(1)
    .max(1440)
    .default(minutes)
    .describe(
      'Minutes after which a closed or busy kitchen counts as open, if the POS says no end: the webhook that ends it may ' +
        'be lost.',
    );
}

/** The minutes that every order takes longer. Any other value becomes undefined, so that the rest still counts. */
export const minutesIfAny = ifAny(z.int().min(1).max(720));

type Said = { state: KitchenReport['state']; until?: string | undefined; extraMinutes?: number | undefined };

/**
 * Makes a report of what the POS says.
 * @param said a state whose end had passed when the webhook arrived is over: the kitchen is open
 * @param limitMinutes the setting `pauseMinutes`, for a state without an end
 */
export function kitchenReport(
  { state, until: end, extraMinutes }: Said,
  receivedAt: Date,
  limitMinutes = PAUSE_MINUTES,
): KitchenReport {
  const until = end === undefined ? new Date(receivedAt.getTime() + limitMinutes * 60_000) : new Date(end);
  if (state === 'open' || until <= receivedAt) return { state: 'open' };
  return state === 'closed' ? { state, until } : { state, until, extraMinutes };
}
