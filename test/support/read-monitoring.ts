import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';

const MONITORING = new URL('../../deploy/monitoring/', import.meta.url);

/** Reads, for each tested alert, whether a test shows it firing, and whether one shows it silent. */
export async function readAlertTests(): Promise<Map<string, { fires: boolean; stays: boolean }>> {
  const file = parse(await readFile(new URL('alerts.test.yaml', MONITORING), 'utf8')) as {
    tests: { promql_expr_test: { expr: string; exp_samples: unknown[] }[] }[];
  };
  const shown = new Map<string, { fires: boolean; stays: boolean }>();
  for (const { expr, exp_samples: samples } of file.tests.flatMap((test) => test.promql_expr_test)) {
    const name = /alertname="(\w+)"/.exec(expr)?.[1] ?? expr;
    const before = shown.get(name) ?? { fires: false, stays: false };
    shown.set(name, {
      fires: before.fires || samples.length > 0,
      stays: before.stays || samples.length === 0,
    });
  }
  return shown;
}

/** Reads the dashboard's queries, with its variables filled in as Grafana would. */
export async function readDashboardExpressions(): Promise<{ panel: string; expr: string }[]> {
  type Target = { expr: string };
  type Panel = { title: string; targets?: Target[] };
  const { panels, annotations } = JSON.parse(await readFile(new URL('dashboard.json', MONITORING), 'utf8')) as {
    panels: Panel[];
    annotations: { list: (Target & { name: string })[] };
  };
  const asked = [
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ panel: title, expr }))),
    ...annotations.list.map(({ name, expr }) => ({ panel: name, expr })),
  ];
  return asked.map(({ panel, expr }) => ({
    panel,
    expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '3h').replaceAll('$job', 'expediter'),
  }));
}
