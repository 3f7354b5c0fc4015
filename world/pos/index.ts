import type { StartSimulator } from './simulator.ts';
import { startDeliverect } from './deliverect/start-deliverect.ts';
import { startHubrise } from './hubrise/start-hubrise.ts';
import { startLightspeedK } from './lightspeed-k/start-lightspeed-k.ts';
import { startSquare } from './square/start-square.ts';
import { startStandard } from './standard/start-standard.ts';
import { startToast } from './toast/start-toast.ts';

/** The simulator of every provider's POS, by integration. A new one needs one line here. */
export const SIMULATORS = {
  standard: startStandard,
  hubrise: startHubrise,
  square: startSquare,
  'lightspeed-k': startLightspeedK,
  deliverect: startDeliverect,
  toast: startToast,
} satisfies Record<string, StartSimulator>;

export type PosName = keyof typeof SIMULATORS;
export const POS_NAMES = Object.keys(SIMULATORS) as PosName[];
