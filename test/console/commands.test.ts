import { expect, test } from 'vitest';
import { commandsOf, quote } from '../../src/core/domain/location-commands.ts';
import { asService } from '../../world/system/as-service.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';
import { runProgram } from '../../world/processes/run-program.ts';

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

test('a quoted id passes through a shell unchanged', async () => {
  const script = NASTY.map((id) => `printf '%s\\0' ${quote(id)}`).join('\n');
  const { out, error } = await runProgram('sh', ['-c', script], {});
  expect(error).toBe('');
  expect(out.split('\0')).toEqual([...NASTY, '']);
});

test('a command has no control characters and no invisible ones', () => {
  for (const id of NASTY) expect(quote(id)).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
});

test('an id that needs no quotes stays as it is', () => {
  expect(quote('club-1')).toBe('club-1');
  expect(quote('')).toBe("''");
});

test('the console shows the documented commands', () => {
  const commands = commandsOf({ locationId: 'club-1', integration: 'square' });
  expect(commands).toEqual({
    connect: 'expediter provider connect club-1',
    changeSettings: 'expediter location change --settings - club-1 < settings.json',
    putSettings: 'expediter location put --location club-1 --integration square --settings - < settings.json',
    schema: 'expediter provider schema square',
  });
});

test('the shown commands store and change the settings of a location with any name', async () => {
  const DATABASE_URL = asService(await createDatabase());
  const env = { DATABASE_URL, SETTINGS_KEY: `test:${Buffer.alloc(32, 7).toString('base64')}` };
  const settings = '{"ordersUrl": "https://pos.example.com/orders", "unsigned": true}';
  const names = ["it's $HOME", '-x', '--json', 'line\n\tbreak'];
  for (const locationId of names) {
    const of = commandsOf({ locationId, integration: 'standard' });
    const script = [of.putSettings, of.changeSettings].join('\n').replaceAll(' < settings.json', '');
    const { out } = await runProgram('sh', ['-c', `expediter() { printf '%s\\0' "$@" end; }\n${script}`], {});
    for (const words of out.split('\0end\0').slice(0, -1)) {
      const { code, error } = await runCli(env, words.split('\0'), settings);
      expect({ code, error: error.replace(/^note: .*\n/, '') }).toEqual({ code: 0, error: '' });
    }
  }
  const listed = await runJson<{ locationId: string }[]>(env, ['location', 'list']);
  expect(listed.map(({ locationId }) => locationId).toSorted()).toEqual(names.toSorted());
});
