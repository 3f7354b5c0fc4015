/** The same commands print the same by the API of a service as by its database. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { runCli } from '../support/run-cli.ts';
import { sendJson, serveHttp } from '../../world/network/serve-http.ts';

let stage: Stage;
let url: string;
let webhookId: string;

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'http://127.0.0.1:9' } });
  url = await stage.listen();
  for (const id of ['club-1', 'club-2']) await stage.addLocation(id, { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.query(`UPDATE locations SET groups = '{nord}' WHERE location_id = 'club-1'`);
  await stage.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
  const { body } = await stage.post(await stage.webhookPath('club-1'), 'no status');
  webhookId = String(body['webhookId']);
});
afterAll(() => stage?.stop());

const byService = () => ({ EXPEDITER_URL: url, EXPEDITER_TOKEN: OPERATOR_TOKEN });
const settings = '{"ordersUrl": "http://127.0.0.1:9/other", "unsigned": true}';
const LOCATION = ['--location', 'club-2', '--integration', 'standard', '--settings', '-'];

describe.each<[name: string, args: () => string[], input?: string]>([
  ['order list', () => ['--group', 'nord']],
  ['order list', () => ['--group', 'south']],
  ['order show', () => ['order-1']],
  ['order show', () => ['nobody']],
  ['webhook list', () => ['--outcome', 'dropped', '--since', '1h']],
  ['webhook show', () => [webhookId]],
  ['webhook replay', () => ['--outcome', 'dropped', '--dry-run']],
  ['location list', () => []],
  ['location show', () => ['club-1']],
  ['location show', () => ['nowhere']],
  ['location put', () => [...LOCATION, '--dry-run'], settings],
  ['location put', () => [...LOCATION, '--country', 'XX'], settings],
  ['location change', () => ['club-2', '--name', 'Club 2', '--dry-run']],
  ['location remove', () => ['club-1']],
  ['provider list', () => []],
  ['provider schema', () => ['standard']],
  ['token list', () => ['--location', 'club-1']],
  ['member erase', () => ['nobody', '--dry-run']],
  ['operator token list', () => []],
  ['operator grant list', () => []],
  ['doctor', () => ['--only', 'environment,keys,public-url']],
  ['certify', () => ['--location', 'nowhere']],
])('expediter %s', (name, args, input) => {
  it.each([
    ['without options', []],
    ['with --json', ['--json']],
  ])('prints the same by the API and by the database %s', async (_how, more) => {
    const whole = [...name.split(' '), ...args(), ...more];
    const printed = async (env: Record<string, string>): Promise<object> => {
      const { code, out, error } = await runCli(env, whole, input);
      // The time until which a dry run looks is that of its start. The order of fields means nothing in JSON.
      const text = out.replaceAll(/"until":"[^"]+"/g, '"until":""');
      return { code, out: more.length === 0 || text === '' ? text : (JSON.parse(text) as unknown), error };
    };
    // Reading a webhook is an action, which the next reading would show.
    const before = await printed(stage.env);
    expect(await printed(byService())).toEqual(before);
  });
});

it('a command by the API changes the service, and the audit names the token of the command', async () => {
  const { code, out } = await runCli(byService(), 'token issue --location club-2 --label till --json'.split(' '));
  expect(code).toBe(0);
  const { tokenId, url: webhook } = JSON.parse(out) as Record<string, string>;
  expect(webhook).toMatch(/^http:\/\/127\.0\.0\.1:9\/webhook\/standard\/club-2\?token=exw_/);
  expect(await runCli(byService(), ['token', 'revoke', String(tokenId)])).toMatchObject({ code: 0, error: '' });
  const paused = await runCli(byService(), ['location', 'pause', 'club-2']);
  expect(paused).toMatchObject({ code: 0, out: 'club-2 is paused; its orders wait\n' });
  const [last] = await stage.query('SELECT actor_name, action FROM audit ORDER BY audit_id DESC LIMIT 1');
  expect(last).toEqual({ actor_name: 'OPERATOR_TOKEN', action: 'pause' });
});

it.each(['http://127.evil.example', 'http://127.0.0.1.evil.example', 'http://localhost.evil.example'])(
  'a token is not sent without TLS to %s, which is not this machine',
  async (elsewhere) => {
    const { error } = await runCli({ ...byService(), EXPEDITER_URL: elsewhere }, ['location', 'list']);
    expect(error).toContain('must begin with https://');
  },
);

it('doctor with --local checks the database of this machine instead of the service', async () => {
  const here = { ...byService(), DATABASE_URL: 'postgres://127.0.0.1:9/nobody' };
  const examined = async (...more: string[]): Promise<string> =>
    (await runCli(here, ['doctor', '--only', 'database', '--json', ...more])).out;
  expect(await examined()).not.toContain('ECONNREFUSED');
  expect(await examined('--local')).toContain('ECONNREFUSED');
});

it.each(['location list', 'order show x', 'login'])('%s prints no control sequences of a terminal', async (name) => {
  const says = '\u001b]0;owned\u0007\u009b2J\u202e\rerror: none';
  const service = await serveHttp((_request, response) =>
    sendJson(response, 409, { type: says, title: says, status: 409, detail: says, code: says }),
  );
  onTestFinished(service.stop);
  const env = { EXPEDITER_URL: service.url, EXPEDITER_TOKEN: OPERATOR_TOKEN };
  const { code, out, error } = await runCli(env, [...name.split(' '), ...(name === 'login' ? [service.url] : [])]);
  expect([code, error]).toEqual([1, expect.stringContaining('owned')]);
  expect(out + error).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
});
