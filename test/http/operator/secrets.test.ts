/** Secrets of locations: what is written is never read back, wherever it goes. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { settingsSchema } from '../../../src/core/locations/describe-settings.ts';
import { registry } from '../../../src/providers/index.ts';
import { HttpUrl, SHOWN } from '../../../src/providers/shared-settings.ts';
import {
  OPERATOR_TOKEN,
  askOperator,
  sendAsIs,
  type Operator,
  type OperatorAnswer,
} from '../../support/ask-operator.ts';
import { OWN_PAGE, logIn } from '../../support/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../support/serve-http.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Hides a secret where a schema could forget it: in a list, in a record, and in a URL that is otherwise shown. */
const nested: Provider = {
  integration: 'nested',
  settings: z.strictObject({
    login: z.strictObject({ user: z.string().meta(SHOWN), password: z.string() }),
    either: z.union([z.string(), z.array(z.string())]),
    keys: z.record(z.string(), z.string()),
    urls: z.array(z.strictObject({ url: HttpUrl })),
    mode: z.enum(['live', 'test']).optional(),
    tries: z.number().optional(),
  }),
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook: () => [],
};

/** Begins every secret here. */
const CANARY = 'Canary0Canary';
/** Every secret of a round, as it is and as Basic sends it. */
const secrets = new Set<string>();
let round = 0;
const secret = (name: string): string => {
  const text = `${CANARY}${name}${round}`;
  secrets.add(text);
  return text;
};
const inBase64 = (name: string): string => {
  const text = Buffer.from(secret(name).padEnd(32, '-')).toString('base64');
  secrets.add(text);
  return `whsec_${text}`;
};
const client = (clientId = secret('clientId')): { clientId: string; clientSecret: string } => {
  const clientSecret = secret('clientSecret');
  secrets.add(Buffer.from(`${clientId}:${clientSecret}`).toString('base64'));
  return { clientId, clientSecret };
};

let stage: Stage;
let operator: Operator;
/** A POS that repeats all that it gets in its error. */
let pos: HttpServer;
let status = 401;
const GUID = '9c59d4ab-8242-450f-8f36-b16e1b3ab802';

/** Right settings of each provider, with new secrets. Together they have every setting that is never shown. */
const RIGHT: Record<string, (() => Record<string, unknown>)[]> = {
  standard: [
    () => ({
      ...Object.fromEntries(
        ['ordersUrl', 'statusUrl', 'cancelUrl'].map((name) => [name, `${pos.url}/?token=${secret(name)}`]),
      ),
      secret: inBase64('secret'),
      previousSecret: inBase64('previousSecret'),
    }),
  ],
  hubrise: [
    () => ({
      ...client('public'),
      accessToken: secret('accessToken'),
      authorizationCode: secret('code'),
      baseUrl: pos.url,
      oauthUrl: pos.url,
    }),
  ],
  square: [
    () => ({
      ...client('public'),
      refreshToken: secret('refreshToken'),
      authorizationCode: secret('code'),
      signatureKey: secret('signatureKey'),
      notificationUrl: `https://example.com/?token=${secret('notificationUrl')}`,
      locationId: 'L1',
      baseUrl: pos.url,
    }),
    () => ({ accessToken: secret('accessToken'), locationId: 'L1', baseUrl: pos.url }),
  ],
  'lightspeed-k': [
    () => ({
      ...client(),
      refreshToken: secret('refreshToken'),
      webhookUsername: secret('username'),
      webhookPassword: secret('password'),
      businessLocationId: '45454565682155',
      endpointId: 'club-1',
      paymentMethod: 'ONLINE',
      baseUrl: pos.url,
      tokenUrl: `${pos.url}/token?key=${secret('tokenUrl')}`,
    }),
  ],
  deliverect: [
    () => ({
      ...client(),
      channelLinkId: secret('link'),
      hmacSecret: secret('hmac'),
      channelName: 'expediter',
      baseUrl: pos.url,
    }),
  ],
  toast: [
    () => ({
      ...client(),
      webhookSecret: [secret('one'), secret('another')],
      restaurantGuid: GUID,
      diningOptionGuids: { pickup: GUID, delivery: GUID },
      baseUrl: pos.url,
    }),
  ],
  nested: [
    () => ({
      login: { user: 'anna', password: secret('password') },
      either: [secret('either')],
      keys: { one: secret('key') },
      urls: [{ url: `https://example.com/?token=${secret('url')}` }, { url: `https://example.com/#${secret('part')}` }],
      mode: 'live',
    }),
  ],
};

beforeAll(async () => {
  pos = await serveHttp(async (request, response) => {
    const said = `${request.url} ${JSON.stringify(request.headers)} ${(await readBody(request)).toString()}`;
    const error = { code: 'UNAUTHORIZED', category: 'AUTHENTICATION_ERROR', detail: said, message: said, field: said };
    sendJson(response, status, { ...error, error: said, error_description: said, error_type: said, errors: [error] });
  });
  stage = await startStage({ providers: [nested], env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test' } });
  operator = await askOperator(stage.app);
});
afterAll(() => Promise.all([stage?.stop(), pos?.stop()]));

function hiddenOf(provider: Provider): string[] {
  const { properties } = settingsSchema(provider) as { properties: Record<string, { writeOnly?: true }> };
  return Object.keys(properties).filter((name) => properties[name]?.writeOnly === true);
}

it('every setting that is never shown is among them', () => {
  for (const provider of [...registry.values(), nested]) {
    const hidden = hiddenOf(provider);
    const given = new Set(RIGHT[provider.integration]?.flatMap((settings) => Object.keys(settings())));
    expect([...given], provider.integration).toEqual(expect.arrayContaining(hidden));
    expect(hidden.length, provider.integration).toBeGreaterThan(0);
  }
});

it.each([...registry.keys(), 'nested'])(
  'no secret of %s is in any answer, log, audit row or metric',
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
      round += 1;
      const path = `/locations/${integration}-${nth}`;
      const right = settingsOf();
      expect(await send('PUT', `${path}?dryRun=true`, { integration, settings: right })).toBe(200);
      expect(await send('PUT', path, { integration, settings: right })).toBe(201);
      round += 1;
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

      for (status of [401, 400, 500]) {
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
    const rows = await stage.query(
      `SELECT to_jsonb(a) AS row FROM audit a UNION ALL SELECT to_jsonb(o) FROM audit_outcomes o UNION ALL
     SELECT to_jsonb(l) FROM locations l UNION ALL SELECT to_jsonb(t) FROM webhook_tokens t UNION ALL
     SELECT to_jsonb(c) FROM credentials c`,
    );
    const places = {
      answers: answers.map(({ text, headers }) => text + JSON.stringify([...headers])),
      logs: stage.logged.slice(logged),
      rows: rows.map((row) => JSON.stringify(row)),
    };
    expect(secrets.size).toBeGreaterThan(10);
    for (const [place, texts] of Object.entries(places)) {
      expect(texts.length, place).toBeGreaterThan(0);
      const found = texts.filter((text) => text.includes(CANARY) || [...secrets].some((each) => text.includes(each)));
      expect(found, place).toEqual([]);
    }
  },
);
