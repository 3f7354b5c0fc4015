import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandsOf } from '../../console/locations/commands.ts';
import { quote } from '../../console/locations/quote.ts';
import { CLI } from '../support/run-cli.ts';
import { runProgram } from '../support/run-program.ts';
import { startSystem } from '../support/start-system.ts';

const NASTY = [
  'club-1',
  "it's; rm -rf /",
  '"$HOME" `id` $(id)',
  String.raw`back\slash\'quote`,
  "'",
  "''a''",
  '-x',
  '--json',
  '~root',
  '#1',
  '=ls',
  'a b\tc\r\n\nd\n',
  '\u001b[2Jgone\u0003',
  'evil\u202etxt\u200b!',
  'Zürich 🍕 *?[a]{b,c} !! %1 && | > < &',
  '&amp; %20 %2F/../x',
];

test('a quoted id comes through a shell as it is', async () => {
  const script = NASTY.map((id) => `printf '%s\\0' ${quote(id)}`).join('\n');
  const { out, error } = await runProgram('sh', ['-c', script], {});
  expect(error).toBe('');
  expect(out.split('\0')).toEqual([...NASTY, '']);
});

test('what a terminal would obey, or nobody would see, is not in a command', () => {
  for (const id of NASTY) expect(quote(id)).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
});

test('an id that needs no quotes is left as it is', () => {
  expect(quote('club-1')).toBe('club-1');
  expect(quote('')).toBe("''");
});

test('the commands are those of the documentation', () => {
  const commands = commandsOf({ locationId: 'club-1', integration: 'square' }, { label: 'till, 2026', expires: '90d' });
  expect(commands).toEqual({
    issueToken: "expediter token issue --location club-1 --label 'till, 2026' --expires 90d",
    connect: 'expediter provider connect club-1',
    show: 'expediter location show club-1',
    putSettings: 'expediter location put --location club-1 --integration square --settings - < settings.json',
    schema: 'expediter provider schema square',
    remove: 'expediter location remove club-1',
  });
});

test(
  'the commands do what they say, at the command line, for whatever a location is called',
  { timeout: 120_000 },
  async () => {
    const system = await startSystem();
    const folder = await mkdtemp(join(tmpdir(), 'expediter-'));
    try {
      await writeFile(
        join(folder, 'settings.json'),
        '{"ordersUrl": "https://pos.example.com/other", "unsigned": true}',
      );
      const ids = ["it's $HOME", '-x', '--json', 'line\n\tbreak'];
      for (const locationId of ids) {
        await system.addLocation(locationId, { ordersUrl: 'https://pos.example.com/orders' });
        const { issueToken, show, putSettings } = commandsOf(
          { locationId, integration: 'standard' },
          { label: `-l ${locationId}`, expires: '90d' },
        );
        const script = [
          `expediter() { '${process.execPath}' '${CLI}' "$@"; }`,
          issueToken,
          putSettings,
          show.replace('show', 'show --json'),
        ].join(' &&\n');
        const { code, error } = await runProgram('sh', ['-c', script], system.env, { cwd: folder });
        expect({ code, error: error.replace(/^note: .*\n/, '') }).toEqual({ code: 0, error: '' });
      }
      const tokens = await system.query('SELECT location_id, label FROM webhook_tokens ORDER BY created_at');
      expect(tokens).toEqual(ids.map((id) => ({ location_id: id, label: `-l ${id}` })));
    } finally {
      await rm(folder, { recursive: true });
      await system.stop();
    }
  },
);
