import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { OPERATIONS } from '../../src/operators/registry.ts';
import { runCli } from '../support/run-cli.ts';
import { runRefused } from '../support/run-refused.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { statusWebhook } from '../../world/pos/status-webhook.ts';

let stage: Stage;
let webhookId: string;

beforeAll(async () => {
  stage = await startStage();
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.addLocation('club-2', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
  const path = await stage.webhookPath('club-1');
  const { body } = await stage.post(path, statusWebhook({ serviceOrderId: 'order-1', status: 'READY' }));
  webhookId = String(body['webhookId']);
});
afterAll(() => stage?.stop());

const cli = (args: readonly string[]): Promise<Ended> =>
  runCli({ ...stage.env, SUDO_USER: 'mallory' }, [...args, '--as', 'grace']);

/** As the system knows who it is, and as what they say of themselves. */
const BY = { kind: 'command_line', id: userInfo().username, name: `${userInfo().username} as grace` };

type Action = Record<string, unknown>;
async function actions(...filters: string[]): Promise<Action[]> {
  const { out, error } = await cli(['audit', 'list', '--json', ...filters]);
  expect(error).toBe('');
  return JSON.parse(out) as Action[];
}

const at = { locationId: 'club-1' };
const ofOrder = { ...at, serviceOrderId: 'order-1' };
/** The fields of an audit entry in addition to its actor and action: subject and outcome. */
const ACTS: [line: string, action: Action][] = [
  ['order retry order-1', { ...ofOrder, action: 'retry', outcome: 'refused', before: 'sent' }],
  ['webhook replay WEBHOOK', { ...at, action: 'replay', after: 'duplicate' }],
  ['location pause club-1', { ...at, action: 'pause', before: 'open', after: 'paused' }],
  ['location resume club-1', { ...at, action: 'resume', before: 'paused', after: 'open' }],
  ['location remove club-1', { ...at, action: 'remove', outcome: 'refused' }],
  ['rekey', { action: 'rekey', outcome: 'done', after: 'settings 0, grants 0, webhooks 0' }],
  [
    'recover --lost-from 2027-01-31T18:00:00Z --orders - --running',
    { action: 'recover', subject: '2027-01-31T18:00:00.000Z', after: expect.stringContaining('left 0') },
  ],
  ['member erase member-9', { action: 'erase member', after: 'erased 0, left 0' }],
];
/** What is no operation, and only reads, nothing of a member; or has no database to write it down in. */
const READS =
  'completion, doctor, export, location schema, login, logout, migrate, plan, platform check, platform init, platform schema'.split(
    ', ',
  );

const visible = (command: Command): Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');
const leaves = (command: Command, path: string[] = []): string[] =>
  command.commands.length === 0
    ? [path.join(' ')]
    : visible(command).flatMap((each) => leaves(each, [...path, each.name()]));

describe('the audit of the command line', () => {
  it('refuses an invalid name in --as with exit code 2', async () => {
    for (const name of ['', 'a\nb', 'x'.repeat(101)]) {
      const error = await runRefused(2, stage.env, ['location', 'pause', 'club-1', '--as', name]);
      expect(error).toContain('1 to 100 characters');
    }
  });

  it('lists each command either as recorded or as not recorded', () => {
    const operations = OPERATIONS.flatMap(({ command }) => command?.name ?? []);
    const others = leaves(buildProgram()).filter((path) => !operations.includes(path));
    expect(others.toSorted()).toEqual(['apply', 'recover', 'rekey', ...READS].toSorted());
  });

  it.each(ACTS)('records %s with its actor', async (line, action) => {
    await cli(line.replace('WEBHOOK', webhookId).split(' '));
    const [last] = await actions('--limit', '1');
    expect(last).toMatchObject({ ...action, by: BY, source: null });
    expect(last?.['outcome']).not.toBeNull();
  });

  it('records a replay of many webhooks as one action, and one more action for each webhook', async () => {
    const since = new Date(Date.now() - 60_000).toISOString();
    await cli(['webhook', 'replay', '--since', since, '--location', 'club-1', '--again']);
    expect((await actions('--limit', '2')).toReversed()).toMatchObject([
      { action: 'replay many', ...at, subject: `since ${since}, again`, after: 'duplicate 1' },
      { action: 'replay', webhookId, ...at, after: 'duplicate' },
    ]);
  });

  it('records no dry run', async () => {
    const before = await actions();
    for (const line of ['webhook replay --outcome dropped', 'rekey']) await cli([...line.split(' '), '--dry-run']);
    expect(await actions()).toEqual(before);
  });

  it('is shown at an order and at a location', async () => {
    for (const line of ['order show order-1', 'location show club-1']) {
      const { out } = await cli(line.split(' '));
      expect(out).toMatch(/\n\nWhat operators did\nat +by .*\n(.*\n)*.*grace \(command line\) +replay /);
    }
  });
});

describe('expediter audit list', () => {
  it.each<[string[], string]>([
    [['--actor', BY.name, '--action', 'rekey'], 'rekey'],
    [['--order', 'order-1', '--action', 'retry'], 'retry'],
    [['--location', 'club-1', '--outcome', 'refused', '--action', 'remove', '--since', '1h'], 'remove'],
  ])('prints the actions that match the options %j', async (filters, action) => {
    expect((await actions(...filters)).map((action) => action['action'])).toEqual([action]);
    const { out } = await cli(['audit', 'list', ...filters]);
    expect(out).toMatch(new RegExp(`^at +by +.*\\n.*grace \\(command line\\) +${action} `));
  });

  it('continues with --after after the last action of a page', async () => {
    const all = await actions();
    const [first] = await actions('--limit', '1');
    expect(await actions('--after', String(first?.['auditId']))).toEqual(all.slice(1));
    expect((await cli(['audit', 'list', '--limit', '1'])).out).toContain(`--after ${String(first?.['auditId'])}`);
    expect(await actions('--until', '1h')).toEqual([]);
    expect((await cli(['audit', 'list', '--after', 'x'])).code).toBe(2);
  });
});
