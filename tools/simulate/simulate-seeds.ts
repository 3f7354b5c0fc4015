import { startPostgres } from '../../world/postgres/start-postgres.ts';
import { loadCode } from './load-code.ts';
import { feedModel, type OrderOfRun } from './order-histories.ts';
import { OURS, runSeed, type RunOptions } from './run.ts';
import { shrink, tell, type Shrunk } from './shrink.ts';
import { prepareServer } from './simulated-postgres.ts';

export type Simulation = Pick<RunOptions, 'onlyOrders' | 'onlyFaults'> & {
  seeds: readonly number[];
  orders: number;
  times: number;
  lines: boolean;
  /** Whether the first seed that fails ends the simulation. */
  untilFound: boolean;
  /** Whether the first seed that fails is shrunk, and ends the simulation. */
  shrinks: boolean;
  /** The guard that is taken away, for the command that runs a seed again. */
  without?: string | undefined;
  /** The folder of the version before. */
  previous?: string | undefined;
  /** Whether the histories of all orders are fed to the model. */
  feeds: boolean;
  say: (line: string) => void;
};

/** @returns the code for the end of the process: 1 if a seed failed */
export async function simulate(about: Simulation): Promise<number> {
  const { seeds, orders, times, say } = about;
  // It lacks what matters only in a power cut, and what it would do automatically. Nobody else may use it: a snapshot
  // of one database depends on the transactions of all.
  const settings = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_connections: '500' };
  const postgres = await startPostgres({ settings, inMemory: true });
  const server = await prepareServer(postgres.url);
  const previous = about.previous === undefined ? undefined : await loadCode(about.previous, 'the version before');
  let failed = 0;
  const histories: OrderOfRun[] = [];
  try {
    for (const seed of seeds) {
      const digests = new Set<string>();
      for (let time = 0; time < times; time += 1) {
        const began = performance.now();
        const options: RunOptions = {
          seed,
          orders,
          keepLines: about.lines,
          onlyOrders: about.onlyOrders,
          onlyFaults: about.onlyFaults,
          previous,
        };
        const result = await runSeed(server, options);
        digests.add(result.digest);
        if (time === 0) histories.push(...result.histories);
        const tookS = ((performance.now() - began) / 1_000).toFixed(2);
        say(
          `seed ${seed}: ${result.digest.slice(0, 12)}, ${result.orders.length} orders in ${result.seconds.toFixed(0)} s of ` +
            `virtual time, ${result.events} events, ${result.applied.length} faults, ${tookS} s, ${result.complaints.length} complaints`,
        );
        for (const line of result.lines) say(line);
        for (const { what, order = '', why } of result.complaints.slice(0, 10)) say(`  ${what}: ${order}: ${why}`);
        if (result.complaints.length === 0) continue;
        failed += 1;
        if (about.shrinks) {
          const shrunk = await shrink(server, options, result);
          for (const line of tell(shrunk)) say(line);
          say(`again: npm run simulate -- ${again(shrunk, about).join(' ')}`);
        }
        if (about.untilFound || about.shrinks) return 1;
      }
      if (digests.size > 1) {
        failed += 1;
        say(`seed ${seed} gave ${digests.size} different histories`);
      }
    }
    if (about.feeds) {
      const { accepted, refused } = await feedModel(histories, (await loadCode(OURS)).registry);
      for (const [name, count] of accepted) say(`the model accepts the histories of ${count} orders of ${name}`);
      for (const { order, integration, events } of refused) {
        say(`the model refuses the history of ${order} of ${integration}: ${events.join(', ')}`);
      }
      failed += refused.length;
    }
  } finally {
    await server.close();
    await postgres.stop();
  }
  return failed > 0 ? 1 : 0;
}

/** The options that run a shrunk seed again. They do not depend on how often faults are. */
function again({ result: { seed, orders, applied } }: Shrunk, { orders: count, without }: Simulation): string[] {
  return [
    `--seed ${seed} --orders ${count}`,
    ...(without === undefined ? [] : [`--without ${without}`]),
    // A number that the seed does not have leaves out all orders.
    ...(orders.length > 0 ? orders : [count + 1]).map((nth) => `--only ${nth}`),
    ...(applied.length === 0 ? ['--no-faults'] : []),
    ...applied.map(({ id }) => `--fault '${id.replaceAll("'", String.raw`'\''`)}'`),
  ];
}
