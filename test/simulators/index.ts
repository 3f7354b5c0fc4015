import type { StartSimulator } from './simulator.ts';
import { startDeliverect } from './start-deliverect.ts';
import { startHubrise } from './start-hubrise.ts';
import { startLightspeedK } from './start-lightspeed-k.ts';
import { startSquare } from './start-square.ts';
import { startStandard } from './start-standard.ts';
import { startToast } from './start-toast.ts';

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
