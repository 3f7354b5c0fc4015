import type { StartSimulator } from './simulator.ts';
import { startDeliverect } from './start-deliverect.ts';
import { startHubrise } from './start-hubrise.ts';
import { startLightspeedK } from './start-lightspeed-k.ts';
import { startSquare } from './start-square.ts';
import { startStandard } from './start-standard.ts';
import { startToast } from './start-toast.ts';

/** The simulator of every POS that we have a provider of, by its integration: one line for a new one. */
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
