/** docs/runbook.md and docs/recovery.md, held to the alerts, to the commands there are, and to what comes of a restore. */
import { existsSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAlerts } from '../../scripts/read-alerts.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { pauseLocation, resumeLocation } from '../../src/core/locations/locations.ts';
import { findable } from '../support/pos-without-deduplication.ts';
import { readDashboardExpressions } from '../support/read-monitoring.ts';
import { sampleOrder } from '../support/sample-order.ts';
import { startPos, type Pos } from '../support/start-pos.ts';
import { startSystem, type System } from '../support/start-system.ts';
import { until } from '../support/until.ts';

const DOCS = new URL('../../docs/', import.meta.url);
const runbook = readFileSync(new URL('runbook.md', DOCS), 'utf8');
const text = readFileSync(new URL('recovery.md', DOCS), 'utf8') + runbook;
const headings = [...runbook.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
const blocks = (language: string): string[] =>
  [...text.matchAll(new RegExp(`^ *\`\`\`${language}\\n(.*?)^ *\`\`\`$`, 'gms'))].map(([, block = '']) => block);

describe('the runbook', () => {
  it('has a section for every alert, and an alert for every section', async () => {
    const sections = [...runbook.slice(runbook.indexOf('\n## Alerts\n')).matchAll(/^### (.+)\n\n_(Page|Ticket)\._ /gm)];
    const alerts = await readAlerts();
    expect(sections.map(([, name, severity = '']) => [name, severity.toLowerCase()])).toEqual(
      alerts.map(({ alert, labels }) => [alert, labels.severity]),
    );
    expect(headings.filter((title) => title.startsWith('Expediter'))).toHaveLength(alerts.length);
  });

  it('explains panels that the dashboard has', async () => {
    const titles = (await readDashboardExpressions()).map(({ panel }) => panel);
    const [, section = ''] = runbook.split('\n## Panels: what a change means\n');
    const named = [...section.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !titles.some((title) => title.startsWith(name)))).toEqual([]);
  });

  it('leads nowhere that is not there', () => {
    const anchors = headings.map(
      (title) =>
        `#${title
          .toLowerCase()
          .replaceAll(/[^\w -]/g, '')
          .replaceAll(' ', '-')}`,
    );
    expect(new Set(anchors).size).toBe(anchors.length);
    for (const [, target = ''] of runbook.matchAll(/\]\(([^)\s]+)\)/g)) {
      const [file = '', anchor] = target.split('#');
      if (file === '') expect(anchors).toContain(target);
      else expect(existsSync(new URL(file, DOCS)), `${target}${anchor ?? ''}`).toBe(true);
    }
  });

  const commands = [
    ...blocks('sh(?: no-test)?')
      .flatMap((block) => block.split('\n'))
      .flatMap((line) => /^(?:.* (?:--|\|) | *)expediter ((?!exec).+?)(?: +#.*)?$/.exec(line)?.[1] ?? []),
    ...[...text.matchAll(/`expediter ([^`]+)`/g)].map(([, words = '']) => words),
  ];

  it('names commands', () => {
    expect(commands.length).toBeGreaterThan(60);
  });

  it.each([...new Set(commands)])('expediter %s can be typed as it stands', async (words) => {
    const program = withoutActions(buildProgram());
    const args = [...words.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
    // A command that is only named may leave its arguments to the reader.
    const isNamed = !args.some((arg) => arg.startsWith('-')) && args.length <= 2;
    await program.parseAsync(args, { from: 'user' }).catch((error: { code?: string; message: string }) => {
      const isIncomplete = /missingArgument|missingMandatoryOptionValue/.test(error.code ?? '');
      if (!(isNamed && isIncomplete)) throw new Error(error.message);
    });
  });
});

function withoutActions(command: Command): Command {
  command.configureOutput({ writeErr: () => {}, writeOut: () => {} });
  if (command.commands.length === 0) command.action(() => {});
  for (const each of command.commands) withoutActions(each);
  return command;
}

describe('after a restore, as docs/recovery.md has it', () => {
  let system: System;
  let pos: Pos;
  beforeAll(async () => {
    [system, pos] = await Promise.all([startSystem({ providers: [findable] }), startPos({ deduplicates: false })]);
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl }, 'findable');
  });
  afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

  const reaches = (serviceOrderId: string, state: string): Promise<unknown> =>
    until(async () => (await system.placement(serviceOrderId))?.['state'] === state);

  it('an order whose ticket was forgotten gets no second one, and one that never had a ticket is asked for first', async () => {
    // What the database does not know of: a ticket that the POS has.
    const order = sampleOrder({ locationId: 'club-1' });
    await fetch(pos.ordersUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(order),
    });
    expect(pos.tickets).toHaveLength(1);
    await pauseLocation(system.pool, 'club-1');
    system.platform.orders.set(order.serviceOrderId, order);
    expect(await system.signal(order.serviceOrderId)).toBe(204);
    const { serviceOrderId: never } = await system.placeOrder({ locationId: 'club-1' });
    await Promise.all([reaches(order.serviceOrderId, 'held'), reaches(never, 'held')]);

    const [sql = ''] = blocks('sql');
    await system.query(sql);
    await resumeLocation(system.pool, 'club-1');

    await reaches(order.serviceOrderId, 'sent');
    await until(async () => {
      const attempts = await system.query('SELECT call, outcome FROM placement_attempts WHERE service_order_id = $1', [
        never,
      ]);
      return attempts.some(({ call, outcome }) => call === 'findOrder' && outcome === 'absent');
    });
    expect(await system.placement(never)).toMatchObject({ state: 'in_doubt' });
    expect(pos.tickets.map((ticket) => ticket.serviceOrderId)).toEqual([order.serviceOrderId]);
  });
});
