import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN, scrape } from '../observe/scrape.ts';
import { readDashboardExpressions } from '../support/read-monitoring.ts';
import { runProgram } from '../support/run-program.ts';
import { startSystem, type System } from '../support/start-system.ts';
import { needsTool } from './needs-tool.ts';

const MONITORING = fileURLToPath(new URL('../../deploy/monitoring/', import.meta.url));

let promtool: string;

beforeAll(() => {
  promtool = needsTool('promtool', 'prometheus');
});

describe('the alert rules', () => {
  it('are what Prometheus takes, expressions and texts', async () => {
    const args = ['check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yaml'];
    const { code, out, error } = await runProgram(promtool, args, {}, { cwd: MONITORING });
    expect(code, out + error).toBe(0);
  });

  it('fire when they should, and neither before nor for anything else', async () => {
    const { code, out, error } = await runProgram(
      promtool,
      ['test', 'rules', 'alerts.test.yaml'],
      {},
      { cwd: MONITORING },
    );
    expect(code, out + error).toBe(0);
  });
});

it('the scrape configuration is one', async () => {
  const args = ['check', 'config', '--syntax-only', 'prometheus.yaml'];
  const { code, out, error } = await runProgram(promtool, args, {}, { cwd: MONITORING });
  expect(code, out + error).toBe(0);
});

describe('the dashboard', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'expediter-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('asks nothing that Prometheus cannot read', async () => {
    const asked = await readDashboardExpressions();
    const rules = asked.map(({ expr }, nth) => ({ record: `asked:${nth}`, expr }));
    // JSON is YAML.
    const file = join(folder, 'dashboard.yaml');
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { code, out, error } = await runProgram(promtool, ['check', 'rules', '--lint=none', file], {});
    expect(code, out + error).toBe(0);
    expect(out).toContain(`${asked.length} rules found`);
  });
});

describe('what the service tells Prometheus', () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      env: { OPERATOR_TOKEN, SPILL_TOPIC: 'spill' },
      jobs: 'all',
    });
  });
  afterAll(() => system?.stop());

  it('follows the conventions for names, units and help', async () => {
    const { text } = await scrape(system.urls[0] ?? '');
    expect(text).toContain('expediter_info');
    const { out, error } = await runProgram(promtool, ['check', 'metrics'], {}, { input: text });
    // Those of Node are what every service on Node has.
    const ours = `${out}${error}`.split('\n').filter((line) => line.startsWith('expediter_'));
    expect(ours).toEqual([]);
    expect(error).not.toContain('error while');
  });
});
