/** What the pages say of the log, held to a real one: every command that reads it is run, every text is looked for. */
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATOR_TOKEN, sendAsIs } from '../../world/system/ask-operator.ts';
import { UNHURRIED } from '../../world/system/fixtures.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { post, startSystem } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { read, ROOT } from '../support/read-project.ts';

const pages = globSync('{*.md,{docs,deploy,examples,kit,migrations}/**/*.md}', {
  cwd: ROOT,
  exclude: (path) => path.endsWith('node_modules'),
}).toSorted();

/** Every command of a page, in a block or in a sentence; one that goes on in the next line is one. */
function commandsIn(page: string): string[] {
  const text = read(page);
  const blocks = [...text.matchAll(/^ *```sh[^\n]*\n(.*?)^ *```$/gms)].flatMap(([, block = '']) =>
    block.replaceAll(/([\\|])\n\s+/g, (_, end: string) => (end === '|' ? '| ' : '')).split('\n'),
  );
  const sentences = text.replaceAll(/^ *```.*?^ *```$/gms, '').matchAll(/`([^`\n]+)`/g);
  return [...blocks, ...[...sentences].map(([, words = '']) => words)].map((each) => each.trim());
}
const commands = [...new Set(pages.flatMap(commandsIn))];
const ofShell = commands.filter((command) => /^(?:kubectl .*)?\blogs (?!describe)/.test(command));
const ofGoogle = commands.filter((command) => command.startsWith('gcloud logging read'));

const folder = mkdtempSync(join(tmpdir(), 'expediter-'));
const isWarning = (line: string): boolean => (JSON.parse(line) as { level: number }).level >= 40;
let lines: Record<string, unknown>[];
beforeAll(async () => {
  const system = await startSystem({ env: { OPERATOR_TOKEN }, limits: { ...UNHURRIED, perSecond: 1 } });
  const [url = ''] = system.urls;
  for (const locationId of ['club-1', 'club-2']) {
    // A POS that knows no such path, as a mistyped URL has it.
    await system.addLocation(locationId, { ordersUrl: `${url}/mistyped` });
  }
  await system.placeOrder({ serviceOrderId: 'order-4711', locationId: 'club-1' });
  const { serviceOrderId: other } = await system.placeOrder({ locationId: 'club-2' });
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  await until(async () => (await sendAsIs(url, '/v1/orders/order-4711?contents=true', { headers })).status === 200);
  const [one, two] = [await system.webhookUrl('club-1'), await system.webhookUrl('club-2')];
  const flood = (): Promise<unknown> => Promise.all(Array.from({ length: 20 }, () => post(one, { eventType: 'menu' })));
  // It floods only where others are served, and where the process falls behind.
  await until(async () => {
    await post(two, { eventType: 'menu' });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    await sleep(30);
    await flood();
    return system.logged.some((line) => line.includes('location floods'));
  });
  await until(() =>
    ['order-4711', other].every((id) => system.logged.some((line) => isWarning(line) && line.includes(id))),
  );
  await system.stop();
  // What is no JSON comes in between.
  writeFileSync(join(folder, 'log'), `npm warn something\n${system.logged.join('')}`);
  lines = system.logged.map((line) => JSON.parse(line) as Record<string, unknown>);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command in a shell of its own, in which `kubectl` prints the log. */
async function run(command: string): Promise<string[]> {
  const [logs = ''] = commands.filter((each) => each.startsWith('logs()'));
  const script = `kubectl() { cat log; }\n${logs}\n${command}`;
  const { code, out, error } = await runProgram('sh', ['-c', script], {}, { cwd: folder });
  expect({ code, error }).toEqual({ code: 0, error: '' });
  return out.trimEnd().split('\n');
}

it('the pages have five shell commands and two Google commands that read the log', () => {
  expect({ ofShell: ofShell.length, ofGoogle: ofGoogle.length }).toEqual({ ofShell: 5, ofGoogle: 2 });
});

it.each(ofShell)('the documented command finds lines: %s', async (command) => {
  expect((await run(command)).filter((line) => /order|operator|club-1|message/.test(line))).not.toEqual([]);
});

it('the documented command for one order finds exactly its log lines', async () => {
  const found = await run(ofShell.find((command) => command.includes('order-4711')) ?? '');
  expect(found.map((line) => JSON.parse(line) as unknown)).toEqual(
    lines.filter((line) => JSON.stringify(line).includes('order-4711')),
  );
});

it('a documented command counts warnings by their text', async () => {
  const found = await run(ofShell.find((command) => command.includes('uniq')) ?? '');
  const counts = Map.groupBy(
    lines.filter(({ level }) => Number(level) >= 40),
    ({ message }) => `"message":${JSON.stringify(message)}`,
  );
  expect(new Set(found.map((line) => line.trim()))).toEqual(
    new Set([...counts].map(([message, { length }]) => `${length} ${message}`)),
  );
  expect(counts.size).toBeGreaterThan(1);
});

it('a documented command names the location that sends a flood', async () => {
  expect(await run(ofShell.find((command) => command.includes('floods')) ?? '')).toEqual(['"locationId":"club-1"']);
});

it('a documented command finds the actions of an operator', async () => {
  const found = await run(ofShell.find((command) => command.includes('"operator"')) ?? '');
  expect(found.map((line) => JSON.parse(line) as unknown)).toContainEqual(
    expect.objectContaining({ action: 'read contents', serviceOrderId: 'order-4711' }),
  );
});

it.each(ofGoogle)('the documented filter finds some log lines: %s', (command) => {
  const [, filter = ''] = /^gcloud logging read '([^']+)' --freshness=\d+[mhd]$/.exec(command) ?? [];
  const clauses = filter.split(' ').map((clause) => /^([\w.]+)(>=|=)(\d+|"[^"]*")$/.exec(clause) ?? [clause]);
  const holds = (line: Record<string, unknown>): boolean =>
    clauses.every(([clause, path = '', comparison, literal = '']) => {
      // Google's own: which service wrote it.
      if (clause === 'resource.labels.service_name="expediter"') return true;
      const [payload, name = '', ...more] = path.split('.');
      expect({ payload, more }, clause).toEqual({ payload: 'jsonPayload', more: [] });
      const wanted = JSON.parse(literal) as unknown;
      const found = line[name];
      if (typeof found !== typeof wanted) return false;
      return comparison === '=' ? found === wanted : Number(found) >= Number(wanted);
    });
  const found = lines.filter(holds);
  expect(found.length).toBeGreaterThan(0);
  expect(found.length).toBeLessThan(lines.length);
});

it('the service logs every text that the pages quote from the log', () => {
  const source = globSync('src/**/*.ts', { cwd: ROOT }).map(read).join('\n');
  const texts = pages.flatMap((page) =>
    [...read(page).matchAll(/\b(?:Log|The log|the log): ((?:[^`.]|`[^`]+`)+)/g)].flatMap(([, sentence = '']) =>
      [...sentence.matchAll(/`([^`]+)`/g)].map(([, text = '']) =>
        // Work by the clock has its name in front.
        text.replace(/^<work>|(?<=.) failed$/, ''),
      ),
    ),
  );
  expect(texts.length).toBeGreaterThan(10);
  expect(texts.filter((text) => !source.includes(text))).toEqual([]);
});
