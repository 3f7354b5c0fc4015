import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { commandOf, PARTS, readBenchArguments } from '../../tools/bench/read-bench-arguments.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { runToEnd, type Ended } from '../../world/processes/run-program.ts';
import { MAIN } from '../../world/processes/run-main.ts';
import { until } from '../../world/processes/until.ts';

const fileOf = (name: string): string => fileURLToPath(new URL(`../../tools/bench/${name}`, import.meta.url));

const bench = (...args: string[]): Promise<Ended> => runToEnd(fileOf('bench.ts'), {}, args);

describe('npm run bench', () => {
  it('prints its help', async () => {
    const { code, out } = await bench('--help');
    expect(code).toBe(0);
    for (const word of ['--quick', '--rounds', '--memory', '--record', ...PARTS]) expect(out).toContain(word);
  });

  it.each([
    [['--only', 'compare,weather'], 1, 'There is no part "weather"'],
    [['--memory', '1'], 1, 'from 2 to 1000'],
    [['--quick', '--record'], 2, '--record needs longer measurements than --quick'],
  ])('refuses %j with an explanation', async (args, code, why) => {
    expect(await bench(...args)).toMatchObject({ code, error: expect.stringContaining(why) });
  });

  it('measures only what its options name', () => {
    expect(readBenchArguments([])).toMatchObject({
      rounds: 5,
      only: ['compare', 'live', 'placements', 'claims', 'start', 'spill'],
    });
    expect(readBenchArguments(['--quick'])).toMatchObject({ rounds: 2, only: ['compare', 'start'], json: false });
    expect(readBenchArguments(['--quick', '--rounds', '7', '--json'])).toMatchObject({ rounds: 7, json: true });
    expect(readBenchArguments(['--only', 'live, start'])).toMatchObject({ only: ['live', 'start'] });
    expect(readBenchArguments(['--only', 'memory'])).toMatchObject({ only: ['memory'], memory: 10 });
    expect(readBenchArguments(['--quick', '--memory', '2'])).toMatchObject({
      only: ['compare', 'start', 'memory'],
      memory: 2,
    });
    expect(readBenchArguments(['--only', 'members'])).toMatchObject({ only: ['members'], rounds: 5 });
    expect(readBenchArguments(['--only', 'grow'])).toMatchObject({ only: ['grow'], rounds: 5 });
    expect(readBenchArguments(['--only', 'evening'])).toMatchObject({ only: ['evening'], evening: 90 });
  });

  it.each([
    [[], '--only compare,live,placements,claims,start,spill'],
    [['--only', 'spill', '--rounds', '2', '--record'], '--only spill --rounds 2'],
    [['--only', 'compare', '--ten-million', '--memory', '3'], '--only compare,memory --ten-million --memory 3'],
  ])('records the options %j as "%s"', (args, options) => {
    expect(commandOf(readBenchArguments(args))).toBe(`npm run bench -- ${options}`);
  });
});

describe('a benchmark that is killed', () => {
  it('leaves no child process and no service', async () => {
    const program = `
      import { forkChild } from ${JSON.stringify(fileOf('stage/fork-child.ts'))};
      import { startService } from ${JSON.stringify(fileOf('stage/start-service.ts'))};
      const child = forkChild('stage/serve-pubsub.ts', ['bench', 'order-status']);
      await child.ask({});
      const service = await startService(${JSON.stringify(MAIN)}, { DATABASE_URL: ${JSON.stringify(await createDatabase())} });
      process.stdout.write(JSON.stringify([child.pid, service.pid]));
      setInterval(() => {}, 1_000);
    `;
    const harness = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said] = (await once(harness.stdout, 'data')) as [Buffer];
    const pids = JSON.parse(said.toString()) as number[];
    expect(pids.map(isRunning)).toEqual([true, true]);
    harness.kill('SIGKILL');
    await until(() => !pids.some(isRunning), 3_000);
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
