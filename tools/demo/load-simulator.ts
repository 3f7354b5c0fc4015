import { pathToFileURL } from 'node:url';
import type { StartSimulator } from '../../world/pos/simulator.ts';
import { POS_NAMES, SIMULATORS } from '../../world/pos/index.ts';

/**
 * Finds the function that starts a simulated POS.
 * @param pos the name of a simulator of this project, or the path of a module whose only function starts one
 * @throws Error that names the module and what is wrong with it
 */
export async function loadSimulator(pos: string): Promise<StartSimulator> {
  const name = POS_NAMES.find((each) => each === pos);
  if (name !== undefined) return SIMULATORS[name];
  let module: object;
  try {
    module = (await import(pathToFileURL(pos).href)) as object;
  } catch (error) {
    throw new Error(`--pos: ${pos} cannot be loaded: ${(error as Error).message}`, { cause: error });
  }
  const [start, ...others] = Object.values(module).filter((each) => typeof each === 'function');
  if (start !== undefined && others.length === 0) return start as StartSimulator;
  throw new Error(
    `--pos: ${pos} exports ${others.length === 0 ? 'no function' : 'several functions'}: export one to start the POS`,
  );
}
