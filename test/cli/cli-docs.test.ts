/** docs/cli.md, held to the commands there are; and all of its commands run, as they stand there. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { runCli } from '../support/run-cli.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { nameToken } from '../../world/system/log-in.ts';
import { startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';

const DOCS = new URL('../../docs/', import.meta.url);
const text = await readFile(new URL('cli.md', DOCS), 'utf8');

type Section = { title: string; text: string; blocks: string[] };
const sections: Section[] = text.split(/^(?=##+ )/m).map((part) => ({
  title: part.split('\n', 1)[0] ?? '',
  text: part,
  blocks: [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? ''),
}));

type Known = { path: string; command: Command };
function all(command: Command, path: string): Known[] {
  return [
    { path, command },
    ...command
      .createHelp()
      .visibleCommands(command)
      .filter((each) => each.name() !== 'help')
      .flatMap((each) => all(each, `${path} ${each.name()}`)),
  ];
}
const known = all(buildProgram(), 'expediter');
const helpOf = (command: Command): string => {
  let out = '';
  command.configureOutput({ writeOut: (words) => (out += words) }).outputHelp();
  return out;
};

/** Every use of `expediter` in a shell's text: what follows up to a pipe, a redirection, a comment, an end. */
function uses(shell: string): string[][] {
  return [
    ...shell.matchAll(/(?:^|[|&(]|\$ |-- |\w=\S+ )\s*expediter((?: +(?:"[^"\n]*"|'[^'\n]*'|[^\s|&;<>)#"']+))*)/gm),
  ].map(([, words = '']) => [...words.matchAll(/"[^"\n]*"|'[^'\n]*'|\S+/g)].map(([word]) => word));
}

/** @returns what is no command, or no option of it */
function unknownIn(words: readonly string[]): string | undefined {
  let found = known[0]?.command;
  const rest = [...words];
  if (rest[0] === 'help') return undefined;
  while (rest[0] !== undefined && !rest[0].startsWith('-') && found !== undefined && found.commands.length > 0) {
    found = found.commands.find((each) => each.name() === rest[0]);
    rest.shift();
  }
  if (found === undefined) return `no command: ${words.join(' ')}`;
  const options = [...found.options, ...(known[0]?.command.options ?? [])].map((option) => option.long);
  const wrong = rest.find((word) => /^--\w/.test(word) && word !== '--help' && !options.includes(word));
  return wrong && `no option ${wrong}: ${words.join(' ')}`;
}

describe('every command', () => {
  it.each(known)('$path has a help text with examples of existing commands and options', ({ command }) => {
    expect(command.description()).not.toBe('');
    const help = helpOf(command);
    expect(help).toMatch(/\nExamples:\n {2}\$ /);
    expect(help).toContain('--json');
    const examples = uses(help.slice(help.indexOf('\nExamples:')));
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) expect(unknownIn(example)).toBeUndefined();
    for (const option of command.options) expect(option.description, option.flags).not.toBe('');
  });

  it('has exit codes that the root help explains', () => {
    expect(helpOf(buildProgram())).toMatch(/Exit codes: 0 .* 1 .* 2 .* 3 /);
  });
});

it('every command in the documentation exists, and so do its options', async () => {
  const pages = (await readdir(DOCS, { recursive: true })).filter((name) => name.endsWith('.md'));
  const texts = await Promise.all(pages.map((name) => readFile(new URL(name, DOCS), 'utf8')));
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const found = [readme, ...texts].flatMap((page) =>
    [...page.matchAll(/^ *```sh\n(.*?)^ *```$/gms)].flatMap((match) => uses((match[1] ?? '').replaceAll('\\\n', ' '))),
  );
  expect(found.length).toBeGreaterThan(60);
  expect(found.map(unknownIn).filter((each) => each !== undefined)).toEqual([]);
});

describe('docs/cli.md', () => {
  /** The files that its commands read. */
  const FILES: Record<string, string> = {
    'club-1.json':
      '{"ordersUrl": "http://127.0.0.1:9/", "secret": "whsec_YW4gZXhhbXBsZTogbWFrZSBhIHNlY3JldCBvZiB5b3VyIG93bg=="}',
    'toast-us.json': '{"baseUrl": "https://toast.example.com", "clientId": "an id", "clientSecret": "a secret"}',
    'locations/orders-url.txt': 'http://127.0.0.1:9/applied\n',
    'member-id.txt': 'member-42\n',
    'client-secret.txt': 'hush\n',
    'member.txt': 'Ada Lovelace\n',
    'locations/club-1.yaml':
      'id: club-1\nintegration: standard\nsettings: {ordersUrl: file:orders-url.txt, unsigned: true}\n',
  };
  let system: System;
  let folder: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    system = await startSystem({ stepped: ['placements', 'refreshes', 'cancellations', 'relay'] });
    await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/' });
    await system.webhookUrl('club-1');
    await seed();
    folder = await mkdtemp(join(tmpdir(), 'expediter-docs-'));
    await mkdir(join(folder, 'locations'));
    for (const [name, content] of Object.entries(FILES)) await writeFile(join(folder, name), content);
    env = { ...system.env, PUBLIC_URL: system.urls[0] ?? '' };
  });
  afterAll(async () => {
    await system?.stop();
    if (folder !== undefined) await rm(folder, { recursive: true });
  });

  /** What the page's ids name. */
  async function seed(): Promise<void> {
    await system.query(
      `WITH w AS (
         INSERT INTO webhook_tokens (token_id, sha256, integration, location_id)
         VALUES ('0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11', '\\x00', 'standard', 'club-1')
       ), g AS (
         INSERT INTO signal_tokens (token_id, sha256, kind)
         VALUES ('0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11', '\\x00', 'plain')
       ), t AS (
         INSERT INTO operator_tokens (token_id, sha256, name, roles)
         VALUES ('0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11', '\\x00', 'laptop', '{operator}')
       ), s AS (
         INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, expires_at)
         VALUES ('0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11', '\\x00', 'person', 'anna', 'Anna', now() + interval '1 hour')
       )
       INSERT INTO operator_grants (grant_id, group_name, roles)
       VALUES ('0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11', 'waiters', '{viewer}')`,
    );
    const serviceOrderId = 'order-4711';
    system.platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId }));
    const contents = sampleOrder({ serviceOrderId, member: { id: 'another', name: 'Ada' } });
    await system.seedOrder({ serviceOrderId, locationId: 'club-1', contents });
    await system.query(
      `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome, reason)
       VALUES ((now() AT TIME ZONE 'UTC')::date, 'club-1', '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33', 'standard', now(), '{}',
               $1, 0, 'dropped', 'the signature is wrong')`,
      [Buffer.from(JSON.stringify(statusWebhook({ serviceOrderId, status: 'RECEIVED' })))],
    );
  }

  /** What an example needs that the one before it may have changed. */
  async function before(line: string): Promise<void> {
    const state = line.includes('order resolve') ? 'in_doubt' : line.includes('--by-phone') ? 'sent' : 'waiting';
    await system.query(
      `WITH c AS (DELETE FROM cancellations), o AS (UPDATE orders SET ended_at = NULL, change = 'not_applied', changed_at = now())
       UPDATE placements SET finished_at = CASE $1 WHEN 'sent' THEN now() END, deadline_at = now() + interval '1 hour', state = $1, request_ended_at = NULL,
                             next_attempt_at = CASE $1 WHEN 'waiting' THEN now() + interval '1 hour' ELSE 'infinity' END`,
      [state],
    );
    if (line.includes('--by-phone')) {
      await system.query(
        `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at)
         VALUES ('order-4711', 'club-1', 'platform', 'by_phone', now(), 'infinity')`,
      );
    }
    if (/operator token|--to Anna/.test(line)) await system.query(`DELETE FROM operator_tokens WHERE name <> 'laptop'`);
    if (line.includes('--to Anna')) await nameToken(system, 'Anna', ['operator']);
  }

  it('has more than 18 blocks of commands', () => {
    expect(sections.flatMap((section) => section.blocks).length).toBeGreaterThan(18);
  });

  // A test order needs a POS, a login a service, a link a vendor, an owner a role, a draft a schema, a recovery topics.
  const isRun = (line: string): boolean =>
    !/^OWNER_|--watch|^expediter (certify|login|logout|recover|platform init|provider (connect-link|disconnect|test))/.test(
      line,
    );

  it.each(sections.filter((section) => section.blocks.length > 0))(
    'the commands of the section "$title" work',
    async ({ blocks }) => {
      for (const line of blocks.flatMap((block) =>
        block
          .trim()
          .replaceAll(/\|\n\s*/g, '| ')
          .split('\n')
          .filter(isRun),
      )) {
        await before(line);
        const [, piped, from] =
          /^(?:(echo .+) \| )?expediter [^|<>]+?(?: < ([\w.-]+)| > [\w.-]+| \| head -c \d+)?$/.exec(line) ??
          expect.fail(`not read here: ${line}`);
        const input = piped === undefined ? FILES[from ?? ''] : (await runProgram('sh', ['-c', piped], {})).out;
        const words = uses(line)
          .flat()
          .map((word) => word.replaceAll(/^["']|["']$/g, ''));
        const args = words.map((word) => (word in FILES || word.endsWith('/') ? join(folder, word) : word));
        const { code, out, error } = await runCli(env, args, input);
        // The tests' Postgres goes without fsync, which the doctor finds.
        const isPlan = line.includes(' apply ') && !line.includes('--yes');
        const wanted = out.includes('fsync') ? 1 : isPlan ? 2 : 0;
        expect({ line, code, error }).toEqual({ line, code: wanted, error: '' });
        expect(out).not.toMatch(/undefined|\[object/);
      }
    },
  );
});
