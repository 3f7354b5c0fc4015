/** docs/runbook.md and docs/recovery.md, held to the alerts and to the commands there are. */
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { readAlerts } from '../../tools/build/read-alerts.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { readDashboardExpressions } from '../support/read-monitoring.ts';
import { read } from '../support/read-project.ts';

const runbook = read('docs/runbook.md');
const text = read('docs/recovery.md') + runbook;
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

  it('names only panels that the dashboard has', async () => {
    const titles = (await readDashboardExpressions()).map(({ panel }) => panel);
    const [, section = ''] = runbook.split('\n## Panels: what a change means\n');
    const named = [...section.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !titles.some((title) => title.startsWith(name)))).toEqual([]);
  });

  const commands = [
    ...blocks('sh(?: no-test)?')
      .flatMap((block) => block.split('\n'))
      .flatMap((line) => /^(?:.* (?:--|\|) | *)expediter ((?!exec).+?)(?: +#.*)?$/.exec(line)?.[1] ?? []),
    ...[...text.matchAll(/`expediter ([^`]+)`/g)].map(([, words = '']) => words),
  ];

  it('names more than 60 commands of expediter', () => {
    expect(commands.length).toBeGreaterThan(60);
  });

  it.each([...new Set(commands)])('expediter %s is a valid command', async (words) => {
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
