/** Secrets of locations: what is written is never read back, wherever it goes. */
import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { registry } from '../../../src/providers/index.ts';
import {
  OPERATOR_TOKEN,
  askOperator,
  sendAsIs,
  type Operator,
  type OperatorAnswer,
} from '../../../world/system/ask-operator.ts';
import { allRows, canaryFinder } from '../../support/canaries.ts';
import {
  CANARY,
  canarySettings,
  hiddenOf,
  nested,
  nextRound,
  secret,
  startEchoPos,
  type EchoPos,
} from '../../support/canary-settings.ts';
import { OWN_PAGE, logIn } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

vi.setConfig({ testTimeout: 120_000 });

let stage: Stage;
let operator: Operator;
let pos: EchoPos;
let RIGHT: ReturnType<typeof canarySettings>;
let ownerPool: pg.Pool;

beforeAll(async () => {
  pos = await startEchoPos();
  RIGHT = canarySettings(pos);
  const env = { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test', LOG_LEVEL: 'trace' };
  stage = await startStage({ providers: [nested], env });
  ownerPool = new pg.Pool({ connectionString: stage.databaseUrl, max: 1 });
  operator = await askOperator(stage.app);
});
afterAll(() => Promise.all([ownerPool?.end(), stage?.stop(), pos?.stop()]));

it('the tests of secrets cover every hidden setting', () => {
  for (const provider of [...registry.values(), nested]) {
    const hidden = hiddenOf(provider);
    const given = new Set(RIGHT[provider.integration]?.flatMap((settings) => Object.keys(settings())));
    expect([...given], provider.integration).toEqual(expect.arrayContaining(hidden));
    expect(hidden.length, provider.integration).toBeGreaterThan(0);
  }
});

const findCanaries = canaryFinder([CANARY]);

it.each([...registry.keys(), 'nested'])(
  'no secret of %s is in any answer, log line or row of the database',
  async (integration) => {
    const answers: OperatorAnswer[] = [];
    const send = async (...asked: Parameters<Operator['send']>): Promise<number> => {
      const answer = await operator.send(...asked);
      answers.push(answer);
      return answer.status;
    };
    const logged = stage.logged.length;
    const hidden = hiddenOf(registry.get(integration) ?? nested);
    for (const [nth, settingsOf] of (RIGHT[integration] ?? []).entries()) {
      nextRound();
      const path = `/locations/${integration}-${nth}`;
      const right = settingsOf();
      expect(await send('PUT', `${path}?dryRun=true`, { integration, settings: right })).toBe(200);
      expect(await send('PUT', path, { integration, settings: right })).toBe(201);
      nextRound();
      const other = settingsOf();
      expect(await send('PATCH', `${path}?dryRun=true`, { settings: other })).toBe(200);
      expect(await send('PATCH', path, { settings: other })).toBe(200);

      for (const name of Object.keys(right)) {
        const text = secret(`wrong-${name}`);
        // A text is right for a setting that is shown, and a URL with a user name is not.
        const texts = hidden.includes(name) ? [text, `${text}\n`] : [];
        const urls = [`http://${text}:${text}@127.0.0.1/`, `http://169.254.169.254/${text}?${text}`, `file:///${text}`];
        for (const value of [[[text]], ...texts, ...(/url$/i.test(name) ? urls : [])]) {
          const body = { integration, settings: { ...right, [name]: value } };
          const statuses = [await send('PATCH', `${path}?dryRun=true`, body), await send('PUT', path, body)];
          expect([
            [200, 200],
            [400, 400],
          ]).toContainEqual(statuses);
        }
      }
      expect(await send('PUT', path, { integration, settings: other })).toBe(200);
      expect(await send('PUT', path, { integration: 'nobody', settings: right })).toBe(400);
      expect(await send('PUT', path, `{"settings":{"key":"${secret('json')}"`)).toBe(400);
      expect(await send('PATCH', path, { settings: right, name: [secret('name')] })).toBe(400);

      for (pos.status of [401, 400, 500, 200]) {
        await send('POST', `${path}/check`);
        await send('POST', `${path}/connect`);
      }
      for (const what of [
        path,
        '/locations',
        '/tokens',
        '/audit?limit=200',
        '/providers',
        '/metrics',
        '/openapi.json',
      ]) {
        expect(await send('GET', what)).toBe(200);
      }
      const cookie = await logIn(stage.app);
      answers.push(await sendAsIs(stage.app, `/console/api${path}`, { headers: { cookie, ...OWN_PAGE } }));
      expect(await send('DELETE', `${path}?dryRun=true&unpaused=true`)).toBe(200);
      expect(await send('DELETE', `${path}?unpaused=true`)).toBe(200);
    }
    const rows = await allRows(ownerPool);
    const places = {
      answers: answers.map(({ text, headers }) => text + JSON.stringify([...headers])),
      logs: stage.logged.slice(logged),
      rows: rows.map(({ place, text }) => `${place} ${text}`),
    };
    for (const [place, texts] of Object.entries(places)) {
      expect(texts.length, place).toBeGreaterThan(0);
      const found = texts.filter((text) => findCanaries(text).length > 0);
      expect(found, place).toEqual([]);
    }
  },
);
