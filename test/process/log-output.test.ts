import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';

const of = (file: string): string => JSON.stringify(new URL(`../../src/observe/${file}`, import.meta.url).href);

let child: ChildProcessWithoutNullStreams;
afterEach(() => void child.kill('SIGKILL'));

/** Runs `body` in a process with a log, whose reader has not begun yet. */
function runWithLog(body: string): void {
  const program = `
    import fs from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { createLog } from ${of('create-log.ts')};
    import { logOutput } from ${of('log-output.ts')};
    const writeSync = fs.writeSync;
    let writes = 0;
    fs.writeSync = (...args) => {
      writes += 1;
      return writeSync(...args);
    };
    (await import('node:module')).syncBuiltinESMExports();
    const output = logOutput((lines) => log.warn({ lines }, 'dropped'));
    const log = createLog('info', output);
    const fill = (count) => {
      for (let nth = 0; nth < count; nth += 1) log.info({ nth, text: 'x'.repeat(1_000) }, 'line');
    };
    ${body}`;
  child = spawn(process.execPath, ['--input-type=module', '-e', program]);
}

type Line = { message: string; nth?: number; lines?: number };

async function readLines(): Promise<Line[]> {
  const written = await text(child.stdout);
  expect(written).not.toMatch(/[\u007f-\u009f\p{Bidi_Control}]/u);
  const lines = written.split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Line);
}
const messages = async (): Promise<string[]> => (await readLines()).map(({ message }) => message);
const nths = (count: number): number[] => Array.from({ length: count }, (_, nth) => nth);

it('log lines of one turn of the event loop are written at once', async () => {
  runWithLog(`
    for (let nth = 0; nth < 100; nth += 1) log.info('line ' + nth);
    await sleep(5);
    log.info('later\\u202e\\u009b');
    await sleep(5);
    process.stderr.write(String(writes));`);
  const [said, writes] = await Promise.all([messages(), text(child.stderr)]);
  expect(said).toEqual([...nths(100).map((nth) => `line ${nth}`), 'later\u202e\u009b']);
  expect(writes).toBe('2');
});

describe('a reader of the log that pauses', () => {
  it('does not block the process, and then gets every line', async () => {
    runWithLog(`
      let longest = 0;
      for (let turn = 0; turn < 10; turn += 1) {
        fill(100);
        const began = performance.now();
        await sleep(20);
        longest = Math.max(longest, performance.now() - began);
      }
      process.stderr.write(String(longest));
      await sleep(500);`);
    const longest = Number(String((await once(child.stderr, 'data'))[0]));
    expect(longest).toBeLessThan(1_000);
    expect((await readLines()).map(({ nth }) => nth)).toEqual([...Array(10)].flatMap(() => nths(100)));
  });

  it('for too long loses lines, and gets their number', async () => {
    runWithLog(`
      fill(10_000);
      await sleep(50);
      process.stderr.write(String(output.dropped()));
      setInterval(() => {}, 1_000);`);
    const dropped = Number(String((await once(child.stderr, 'data'))[0]));
    expect(dropped).toBeGreaterThan(1_000);
    child.stdout.on('data', (data: Buffer) => void (data.includes('"dropped"') && child.kill()));
    const lines = await readLines();
    expect(lines.at(-1)).toMatchObject({ message: 'dropped', lines: dropped });
    expect(lines.slice(0, -1).map(({ nth }) => nth)).toEqual(nths(10_000 - dropped));
  });

  it('gets the last lines of a process that has ended meanwhile', async () => {
    runWithLog(`fill(500); process.exit(0);`);
    await sleep(400);
    expect((await readLines()).length).toBe(500);
  });

  it('for ever does not keep the process from its end', async () => {
    runWithLog(`fill(500); process.exit(7);`);
    expect(await once(child, 'exit')).toEqual([7, null]);
  });
});

it('the process loses log lines and does not crash when the reader of the log is gone', async () => {
  runWithLog(`
    await sleep(100);
    fill(10);
    await sleep(50);
    fill(10);
    await sleep(50);
    process.stderr.write(output.dropped() + ' ' + writes);
    process.exit(0);`);
  child.stdout.destroy();
  const [said] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(said).toBe('20 2');
});

it.each([
  ['ends at once', 'process.exit(0);'],
  ['fails', "process.once('uncaughtException', () => process.exit(0)); throw new Error('on purpose');"],
])('no log line is lost when the process %s', async (_how, end) => {
  runWithLog(`log.info('before the end'); ${end}`);
  expect(await messages()).toEqual(['before the end']);
});
