import { setTimeout as sleep } from 'node:timers/promises';
import { chance } from './chance.ts';
import type { Books } from './check-books.ts';
import { startCuttingNetwork, type CuttingNetwork } from './cutting-network.ts';
import { startFaultyPostgres } from './faulty-postgres.ts';
import { followByPhone } from './follow-by-phone.ts';
import { recordHistory, type History } from './history.ts';
import { injectFaults } from './inject-faults.ts';
import type { Fault } from './plan-faults.ts';
import { playOut } from './play-out.ts';
import type { Instances } from './run-instances.ts';
import { scriptOrder } from './script-order.ts';
import { setStage } from './set-stage.ts';

export type PhonesResult = Books & {
  /** The number of orders, each followed by one phone, and the number of messages that the phones got in total. */
  phones: number;
  told: number;
  /** Streams that were cut: in total, by the network, and by the end of their process. */
  cuts: number;
  cutByNetwork: number;
  cutByDeath: number;
  cutByReplacement: number;
  /** How many processes were killed, how many were replaced, and how often Postgres was down. */
  killed: number;
  replaced: number;
  outages: number;
};

/** Orders are placed for ORDERS_FOR_S. Streams are cut a little longer, until most orders have ended. */
const ORDERS_FOR_S = 180;
const CUTS_FOR_S = 220;
/** A busy machine may need until this time for the last cuts. */
const CUTS_UNTIL_S = 260;
const ORDERS_A_SECOND = 6;
/** The kitchens are slow, so that some hundred orders are open at any time. */
const SLOWEST_STEP_MS = 30_000;
const CUTS = 10_000;
const CUT_EVERY_MS = 100;
/** No stream is cut before this time, because there are too few phones. */
const QUIET_S = 10;
/** Both processes work for this time before one of them is killed or replaced. */
const REST_S = 12;
const REPLACED_EVERY = 4;
const OUTAGES = 4;
const AWAY_S = 10;
/** The deadline is longer than all faults of an order may take, so that no order fails because of them. */
const DEADLINE_S = 180;

/** Lets a phone follow each order, and cuts the streams of the phones until there were enough cuts (CUTS). */
export async function runPhones(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: PhonesResult; complaints: string[] }> {
  const history = recordHistory();
  const database = await startFaultyPostgres();
  const stage = await setStage({
    seed,
    history,
    database,
    deadlineS: DEADLINE_S,
  });
  const network = await startCuttingNetwork(stage.url);
  try {
    const locationIds = stage.kitchens.map(({ locationId }) => locationId);
    const scripts = Array.from({ length: ORDERS_FOR_S * ORDERS_A_SECOND }, (_, nth) =>
      scriptOrder(seed, nth + 1, locationIds, new Set(), { longestStepMs: SLOWEST_STEP_MS }),
    );
    const phones = followByPhone({ url: `${network.url}/follow`, every: 1 });
    let processes = { killed: 0, replaced: 0 };
    print(`seed ${seed}: ${scripts.length} phones, ${CUTS} cuts in ${CUTS_FOR_S} s`);
    const disturb = async (): Promise<void> => {
      const outages = injectFaults(stage, planOutages(), seed, history);
      const ending = endProcesses(stage.instances, history);
      await Promise.all([outages, cutOff(network, seed, history)]);
      processes = await ending;
    };
    const { books, complaints, words } = await playOut({
      stage,
      scripts,
      ordersPerSecond: ORDERS_A_SECOND,
      history,
      disturb,
      phones,
      print,
    });
    complaints.push(...stage.instances.misbehaved);
    const { network: cutByNetwork, died: cutByDeath, drained: cutByReplacement } = network.cuts;
    const cuts = countCuts(network);
    if (cuts < CUTS) complaints.push(`there were only ${cuts} cuts`);
    print(words);
    return {
      result: {
        phones: phones.all.size,
        told: [...phones.all.values()].reduce((sum, { told }) => sum + told.length, 0),
        cuts,
        cutByNetwork,
        cutByDeath,
        cutByReplacement,
        ...processes,
        outages: OUTAGES,
        ...books,
      },
      complaints,
    };
  } finally {
    await network.stop();
    await stage.stop();
  }
}

function planOutages(): Fault[] {
  const every = (CUTS_FOR_S - AWAY_S) / OUTAGES;
  return Array.from({ length: OUTAGES }, (_, nth) => ({
    lane: 'database',
    kind: 'away',
    nth: nth + 1,
    at: every * (nth + 0.5),
    lasts: AWAY_S,
  }));
}

/** Kills or, at every REPLACED_EVERY-th turn, replaces a process. Before each turn, waits until all are ready. */
async function endProcesses(
  instances: Instances,
  history: History,
): Promise<Pick<PhonesResult, 'killed' | 'replaced'>> {
  const ended = { killed: 0, replaced: 0 };
  for (let nth = 1; history.now() < CUTS_FOR_S * 1_000; nth += 1) {
    await instances.untilReady();
    await sleep(REST_S * 1_000);
    if (nth % REPLACED_EVERY === 0) {
      await instances.roll(nth);
      ended.replaced += 1;
    } else {
      await instances.kill(nth);
      ended.killed += 1;
    }
  }
  return ended;
}

const countCuts = ({ cuts }: CuttingNetwork): number => cuts.network + cuts.died + cuts.drained;

/** Cuts streams evenly over the run. Cuts by the end of a process count too, so the network makes only the others. */
async function cutOff(network: CuttingNetwork, seed: number, history: History): Promise<void> {
  let drawn = 0;
  while (countCuts(network) < CUTS && history.now() < CUTS_UNTIL_S * 1_000) {
    await sleep(CUT_EVERY_MS);
    const share = Math.min(1, (history.now() / 1_000 - QUIET_S) / (CUTS_FOR_S - QUIET_S));
    for (let left = share * CUTS - countCuts(network); left > 0; left -= 1) {
      network.cut(chance(seed, 'cut', (drawn += 1)));
    }
  }
}
