import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../support/run-program.ts';
import { post, startSystem, statusWebhook, type System } from '../support/start-system.ts';

let system: System;
let webhookId: string;
let tokenId: string;

beforeAll(async () => {
  system = await startSystem();
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await system.addLocation('club-2', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await system.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
  const url = await system.webhookUrl('club-1');
  webhookId = String(
    (await post(url, statusWebhook({ serviceOrderId: 'order-1', status: 'READY' }))).body['webhookId'],
  );
  tokenId = String((await system.query('SELECT token_id::text FROM webhook_tokens LIMIT 1'))[0]?.['token_id']);
});
afterAll(() => system?.stop());

const cli = (args: readonly string[], input = ''): Promise<Ended> =>
  runCli({ ...system.env, SUDO_USER: 'mallory' }, [...args, '--as', 'grace'], input);

/** As the system knows who it is, and as what they say of themselves. */
const BY = { kind: 'command_line', id: userInfo().username, name: `${userInfo().username} as grace` };

type Act = Record<string, unknown>;
async function acts(...filters: string[]): Promise<Act[]> {
  const { out, error } = await cli(['audit', 'list', '--json', ...filters]);
  expect(error).toBe('');
  return JSON.parse(out) as Act[];
}

const at = { locationId: 'club-1' };
const ofOrder = { ...at, serviceOrderId: 'order-1' };
const settings = JSON.stringify({ ordersUrl: 'http://127.0.0.1:9/orders', unsigned: true });
/** What changes something or tells of a member: how it is used, and what the audit says of it. */
const ACTS: Record<string, { args: () => string[]; input?: string; act: Act }> = {
  'order retry': { args: () => ['order-1'], act: { ...ofOrder, did: 'retry', outcome: 'refused', before: 'sent' } },
  'order resolve': { args: () => ['order-1', '--not-there'], act: { ...ofOrder, did: 'resolve', outcome: 'refused' } },
  'order cancel': { args: () => ['order-1'], act: { ...ofOrder, did: 'cancel', before: 'sent' } },
  'order renumber': {
    args: () => [],
    act: { did: 'renumber', outcome: 'done', after: expect.stringMatching(/^\d+$/) },
  },
  'webhook show': { args: () => [webhookId], act: { ...at, did: 'read webhook', outcome: 'done' } },
  'webhook replay': { args: () => [webhookId], act: { ...at, did: 'replay', outcome: 'done', after: 'duplicate' } },
  'location put': {
    args: () => ['--location', 'club-1', '--integration', 'standard', '--settings', '-'],
    input: settings,
    act: { ...at, did: 'put', outcome: 'done', before: 'standard', after: 'standard' },
  },
  'location pause': { args: () => ['club-1'], act: { ...at, did: 'pause', before: 'open', after: 'paused' } },
  'location resume': { args: () => ['club-1'], act: { ...at, did: 'resume', before: 'paused', after: 'open' } },
  'location remove': { args: () => ['club-1'], act: { ...at, did: 'remove', outcome: 'refused' } },
  'token issue': { args: () => ['--location', 'club-1'], act: { ...at, did: 'issue', outcome: 'done' } },
  'token revoke': { args: () => [tokenId], act: { ...at, did: 'revoke', outcome: 'done' } },
  'provider check': { args: () => ['club-1'], act: { ...at, did: 'check', outcome: 'done', after: 'unchecked' } },
  'provider connect': { args: () => ['club-1'], act: { ...at, did: 'connect' } },
  certify: { args: () => ['--location', 'club-1', '--wait', '1s'], act: { ...at, did: 'certify' } },
  rekey: { args: () => [], act: { did: 'rekey', outcome: 'done', after: 'settings 0, grants 0, webhooks 0' } },
  'member erase': {
    args: () => ['member-9'],
    act: { did: 'erase member', outcome: 'done', after: 'erased 0, left 0' },
  },
};
/** What only reads, and nothing of a member; or has no database to write it down in. */
const READS = [
  'audit list',
  'doctor',
  'location list',
  'location show',
  'migrate',
  'order list',
  'order show',
  'platform check',
  'platform schema',
  'provider list',
  'provider schema',
  'token list',
  'webhook list',
];

const leaves = (command: Command, path: string[] = []): string[] =>
  command.commands.length === 0
    ? [path.join(' ')]
    : command.commands.flatMap((each) => leaves(each, [...path, each.name()]));

describe('the command line', () => {
  it('takes no name that cannot be read', async () => {
    for (const name of ['', 'a\nb', 'x'.repeat(101)]) {
      const { code, error } = await runCli(system.env, ['location', 'pause', 'club-1', '--as', name]);
      expect([code, error]).toEqual([2, expect.stringContaining('1 to 100 characters')]);
    }
  });

  it('has no command of which nobody said whether it is an act', () => {
    // Of operators' tokens, grants and sessions their own tests say it.
    const own = leaves(buildProgram()).filter((path) => !path.startsWith('operator '));
    expect(own.toSorted()).toEqual([...Object.keys(ACTS), ...READS].toSorted());
  });

  it.each(Object.entries(ACTS))('%s is written down with who did it', async (path, { args, input = '', act }) => {
    await runCli(
      { ...system.env, SUDO_USER: 'mallory', PUBLIC_URL: 'http://127.0.0.1:9' },
      [...path.split(' '), ...args(), '--as', 'grace'],
      input,
    );
    const [last] = await acts('--limit', '1');
    expect(last).toMatchObject({ ...act, by: BY, source: null });
    expect(last?.['outcome']).not.toBeNull();
  });

  it('replays many as one act, and as one for each', async () => {
    const since = new Date(Date.now() - 60_000).toISOString();
    await cli(['webhook', 'replay', '--since', since, '--location', 'club-1', '--again']);
    expect((await acts('--limit', '2')).toReversed()).toMatchObject([
      { did: 'replay many', ...at, subject: `since ${since}, again`, after: 'duplicate 1' },
      { did: 'replay', webhookId, ...at, after: 'duplicate' },
    ]);
  });

  it('writes down no dry run, and nothing of what is not there', async () => {
    const before = await acts();
    for (const args of [
      ['webhook', 'replay', webhookId, '--dry-run'],
      ['webhook', 'replay', '--outcome', 'dropped', '--dry-run'],
      ['member', 'erase', 'member-9', '--dry-run'],
      ['rekey', '--dry-run'],
      ['location', 'pause', 'nowhere'],
      ['token', 'revoke', 'exw_of-somebody'],
      ['webhook', 'show', 'nothing'],
    ]) {
      await cli(args);
    }
    expect(await acts()).toEqual(before);
  });

  it('tells it in the story of an order and of a location', async () => {
    for (const args of [
      ['order', 'show', 'order-1'],
      ['location', 'show', 'club-1'],
    ]) {
      const { out } = await cli(args);
      expect(out).toMatch(/\n\nWhat operators did\nat +by .*\n(.*\n)*.*grace \(command line\) +replay /);
    }
  });
});

describe('expediter audit list', () => {
  it.each<[string[], string]>([
    [['--did', 'put'], 'put'],
    [['--actor', BY.name, '--did', 'rekey'], 'rekey'],
    [['--order', 'order-1', '--did', 'retry'], 'retry'],
    [['--location', 'club-1', '--outcome', 'refused', '--did', 'remove', '--since', '1h'], 'remove'],
  ])('%j finds what matches', async (filters, did) => {
    expect((await acts(...filters)).map((act) => act['did'])).toEqual([did]);
    const { out } = await cli(['audit', 'list', ...filters]);
    expect(out).toMatch(new RegExp(`^at +by +.*\\n.*grace \\(command line\\) +${did} `));
  });

  it('goes on behind the last', async () => {
    const all = await acts();
    const [first] = await acts('--limit', '1');
    expect(await acts('--after', String(first?.['auditId']))).toEqual(all.slice(1));
    expect((await cli(['audit', 'list', '--limit', '1'])).out).toContain(`--after ${String(first?.['auditId'])}`);
    expect(await acts('--until', '1h')).toEqual([]);
    expect((await cli(['audit', 'list', '--after', 'x'])).code).toBe(2);
  });
});
