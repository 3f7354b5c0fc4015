import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { OPERATOR_TOKEN, scrape } from '../observe/scrape.ts';
import { readDashboardExpressions } from '../support/read-monitoring.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { needsTool } from './needs-tool.ts';

const MONITORING = fileURLToPath(new URL('../../deploy/monitoring/', import.meta.url));

let promtool: string;

beforeAll(() => {
  promtool = needsTool('promtool', 'prometheus');
});

/** Has promtool look at something, and expects that it finds no fault. @returns what it said */
async function accepted(...args: string[]): Promise<string> {
  const { code, out, error } = await runProgram(promtool, args, {}, { cwd: MONITORING });
  expect(code, out + error).toBe(0);
  return out;
}

describe('the alert rules', () => {
  it('are valid for promtool', async () => {
    await accepted('check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yaml');
  });

  it('pass their own tests with promtool', async () => {
    await accepted('test', 'rules', 'alerts.test.yaml');
  });
});

it('the scrape configuration of Prometheus is valid', async () => {
  await accepted('check', 'config', '--syntax-only', 'prometheus.yaml');
});

it('the dashboard has only valid queries', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'expediter-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const asked = await readDashboardExpressions();
  const rules = asked.map(({ expr }, nth) => ({ record: `asked:${nth}`, expr }));
  // JSON is YAML.
  const file = join(folder, 'dashboard.yaml');
  await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  expect(await accepted('check', 'rules', '--lint=none', file)).toContain(`${asked.length} rules found`);
});

describe('the metrics of the service', () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      env: { OPERATOR_TOKEN, SPILL_TOPIC: 'spill' },
      jobs: 'all',
    });
  });
  afterAll(() => system?.stop());

  it('follow the conventions for names, units and help', async () => {
    const { text } = await scrape(system.urls[0] ?? '');
    expect(text).toContain('expediter_info');
    const { out, error } = await runProgram(promtool, ['check', 'metrics'], {}, { input: text });
    // Those of Node are what every service on Node has.
    const ours = `${out}${error}`.split('\n').filter((line) => line.startsWith('expediter_'));
    expect(ours).toEqual([]);
    expect(error).not.toContain('error while');
  });
});
