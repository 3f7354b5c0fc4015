import type { PosName } from './read-demo-arguments.ts';
import { startDeliverect } from '../test/simulators/start-deliverect.ts';
import { startHubrise } from '../test/simulators/start-hubrise.ts';
import { startLightspeedK } from '../test/simulators/start-lightspeed-k.ts';
import type { StartSimulator } from '../test/simulators/simulator.ts';
import { startSquare } from '../test/simulators/start-square.ts';
import { startStandard } from '../test/simulators/start-standard.ts';
import { startToast } from '../test/simulators/start-toast.ts';

/** The POS systems that the demo can run, by their integration. */
export const POS_SYSTEMS: Readonly<Record<PosName, StartSimulator>> = {
  standard: startStandard,
  hubrise: startHubrise,
  square: startSquare,
  'lightspeed-k': startLightspeedK,
  deliverect: startDeliverect,
  toast: startToast,
};
