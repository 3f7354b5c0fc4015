import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN, scrape } from '../observe/scrape.ts';
import { readAlerts, readRecordingRules, type Alert } from '../../tools/build/read-alerts.ts';
import { readAlertTests, readDashboardExpressions } from '../support/read-monitoring.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

/** Prometheus adds them itself. */
const ITS_OWN_LABELS = ['job', 'instance', 'alertname', 'alertstate', 'severity'];
const ITS_OWN_SERIES = ['up', 'ALERTS'];

let alerts: Alert[];
let recorded: string[];
/** What is asked of Prometheus, and by whom. */
let asked: { from: string; expr: string }[];
beforeAll(async () => {
  const [rules, panels] = await Promise.all([readRecordingRules(), readDashboardExpressions()]);
  alerts = await readAlerts();
  recorded = rules.map(({ record }) => record);
  asked = [
    ...alerts.map(({ alert, expr }) => ({ from: alert, expr })),
    ...rules.map(({ record, expr }) => ({ from: record, expr })),
    ...panels.map(({ panel, expr }) => ({ from: panel, expr })),
  ];
});

describe('an alert', () => {
  it('has its urgency, a sentence with figures, and a link to the runbook', () => {
    expect(alerts.length).toBeGreaterThan(20);
    for (const { alert, labels, annotations } of alerts) {
      expect(alert).toMatch(/^Expediter[A-Z][A-Za-z]+$/);
      expect(Object.keys(annotations), alert).toEqual(['summary', 'description', 'runbook_url']);
      expect(['page', 'ticket'], alert).toContain(labels.severity);
      expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
      expect(annotations.summary.length, alert).toBeLessThan(100);
      expect(annotations.description, alert).toMatch(/\.$/);
    }
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
  });

  it('has a test where it fires, and one where it does not', async () => {
    const shown = await readAlertTests();
    expect(new Set(shown.keys())).toEqual(new Set(alerts.map(({ alert }) => alert)));
    for (const [alert, about] of shown) expect({ alert, ...about }).toEqual({ alert, fires: true, stays: true });
  });
});

describe('the alerts and the dashboard', () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      env: { OPERATOR_TOKEN, SPILL_TOPIC: 'spill' },
    });
    await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  });
  afterAll(() => system?.stop());

  /** What there is, by name; of each label the values that it has. */
  let told: Map<string, Map<string, Set<string>>>;
  beforeAll(async () => {
    await system.query(
      `INSERT INTO credentials (seed_sha256, integration, granted_at, lasts_s) VALUES ('1', 'standard', now(), 86400)`,
    );
    await system.query(`UPDATE locations SET grant_sha256 = '1'`);
    const webhook = await post(
      await system.webhookUrl('club-1'),
      statusWebhook({ serviceOrderId: 'x', status: 'READY' }),
    );
    expect(webhook.status).toBe(200);
    await system.round('recording of last-seen times');
    await system.round('measurement of the backlog');
    // Garbage is collected when there is some.
    told = await until(async () => {
      const series = readSeries((await scrape(system.urls[0] ?? '')).text);
      return series.has('nodejs_gc_duration_seconds_sum') && series;
    });
  });

  it('use only series, labels and values that the service exports', () => {
    for (const { from, expr } of asked) {
      const selectors = selectorsOf(expr).filter(({ name }) => !ITS_OWN_SERIES.includes(name));
      for (const { name, matchers } of selectors) {
        const labels = told.get(name);
        expect(labels, `${from} asks for ${name}`).toBeDefined();
        for (const { label, values } of matchers.filter((each) => !ITS_OWN_LABELS.includes(each.label))) {
          expect([...(labels?.get(label) ?? [])], `${from}: ${name} by ${label}`).toEqual(
            expect.arrayContaining(values),
          );
        }
      }
      const known = new Set(selectors.flatMap(({ name }) => [...(told.get(name)?.keys() ?? [])]));
      for (const label of groupingOf(expr)) expect([...known, ...ITS_OWN_LABELS], `${from}: ${label}`).toContain(label);
    }
  });

  it('use every series of the service', () => {
    const watched = asked
      .flatMap(({ expr }) => selectorsOf(expr))
      .map(({ name }) => name.replace(/_(bucket|sum|count)$/, ''));
    const ours = [...told.keys()]
      .filter((name) => name.startsWith('expediter_'))
      .map((name) => name.replace(/_(bucket|sum|count)$/, ''));
    expect(new Set(watched.filter((name) => name.startsWith('expediter_')))).toEqual(new Set(ours));
  });

  it('use exactly the series that the recording rules define', () => {
    const used = asked.flatMap(({ expr }) => expr.match(/\bjob:\w+:\w+/g) ?? []);
    expect(new Set(used)).toEqual(new Set(recorded));
  });

  it('cannot use a label of a location, an order or a member, because no metric has one', () => {
    for (const [name, labels] of told)
      expect(
        [...labels.keys()].filter((label) => /location|order|member/.test(label)),
        name,
      ).toEqual([]);
    expect([...told.values()].flatMap((labels) => [...labels.values()].flatMap((values) => [...values]))).not.toContain(
      'club-1',
    );
  });
});

function readSeries(exposition: string): Map<string, Map<string, Set<string>>> {
  const series = new Map<string, Map<string, Set<string>>>();
  for (const line of exposition.split('\n')) {
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === undefined) continue;
    const known = series.get(name) ?? new Map<string, Set<string>>();
    series.set(name, known);
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      known.set(label, (known.get(label) ?? new Set()).add(value));
    }
  }
  return series;
}

/** Every metric that an expression names, and what its labels are compared with. */
function selectorsOf(expr: string): { name: string; matchers: { label: string; values: string[] }[] }[] {
  const selectors = expr.matchAll(/(?<![\w:])(expediter_\w+|nodejs_\w+|process_\w+|up|ALERTS)\b(?:\{([^}]*)\})?/g);
  return [...selectors].map(([, name = '', inside = '']) => ({
    name,
    matchers: [...inside.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(([, label = '', , value = '']) => ({
      label,
      // Prometheus 3 makes 5.0 of a bucket's 5.
      values: value.replace('(\\\\.0)?', '').split('|'),
    })),
  }));
}

/** The labels by which an expression sums, matches and joins. */
function groupingOf(expr: string): string[] {
  return [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, ?/));
}
