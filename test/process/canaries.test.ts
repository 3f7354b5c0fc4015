/**
 * What is secret at a location is nowhere: a canary in every secret setting of every provider, a POS that repeats what it
 * gets, all workers, all operations for every role, and then every answer, line, message and column is searched.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { placeOfSettings } from '../../src/core/locations/locations.ts';
import { parseSettingsKeys, unseal } from '../../src/core/locations/settings-key.ts';
import { ROLES, has } from '../../src/core/operators/operator.ts';
import { ACCESS, API_PATH, FOR_PROGRAMS } from '../../src/operators/registry.ts';
import { OPERATOR_TOKEN, sendAsIs } from '../../world/system/ask-operator.ts';
import { bodiesAt } from '../support/bodies-of-routes.ts';
import { allRows, canaryFinder, disguisesOf } from '../support/canaries.ts';
import {
  CANARY,
  canarySettings,
  nested,
  nextRound,
  secret,
  startEchoPos,
  type EchoPos,
} from '../support/canary-settings.ts';
import { nameToken } from '../../world/system/log-in.ts';
import { post, startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

const findCanaries = canaryFinder([CANARY]);
/** What the POS answers, one after the other. */
const STATUSES = [401, 400, 404, 429, 500, 302, 200];
/** Each role alone, and all. */
const ROLE_SETS = [...ROLES.map((role) => [role]), [...ROLES]];

let pos: EchoPos;
let system: System;
let ownerPool: pg.Pool;
const locations: { locationId: string; integration: string }[] = [];
const orders: { serviceOrderId: string; locationId: string }[] = [];
/** Everything that anybody was answered, with the request. */
const answers: string[] = [];

beforeAll(async () => {
  pos = await startEchoPos();
  const env = { OPERATOR_TOKEN, LOG_LEVEL: 'trace', PUBLIC_URL: 'https://expediter.test', KITCHEN_TOPIC: 'kitchens' };
  system = await startSystem({ providers: [nested], jobs: 'all', env: { ...env, ATTENTION_TOPIC: 'attention' } });
  ownerPool = new pg.Pool({ connectionString: system.databaseUrl, max: 2 });
  for (const [integration, each] of Object.entries(canarySettings(pos))) {
    for (const [nth, settingsOf] of each.entries()) {
      const locationId = `${integration}-${nth}`;
      nextRound();
      const body = { integration, settings: settingsOf(), groups: ['all'] };
      const put = await ask('PUT', `/locations/${locationId}`, body);
      if (put !== 201) throw new Error(`${locationId}: ${answers.at(-1)}`);
      locations.push({ locationId, integration });
    }
  }
});
afterAll(() => Promise.all([ownerPool?.end(), system?.stop(), pos?.stop()]));

async function ask(method: string, path: string, body?: unknown, token: string = OPERATOR_TOKEN): Promise<number> {
  const url = `${path in { '/metrics': 1, '/openapi.json': 1 } ? '' : API_PATH}${path}`;
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const sent = body === undefined ? undefined : JSON.stringify(body);
  const answer = await sendAsIs(system.operatorUrls[0] ?? '', url, { method, headers, body: sent });
  answers.push(`${method} ${path}: ${answer.status} ${answer.text} ${JSON.stringify([...answer.headers])}`);
  return answer.status;
}

/** What a route is sent at a location. Settings are right ones, and ones of which no value is right. */
function bodiesOf(route: string, { locationId, integration }: (typeof locations)[number]): unknown[] {
  nextRound();
  const settings = canarySettings(pos)[integration]?.[Number(locationId.split('-').at(-1))]?.() ?? {};
  const wrong = Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, [[value]]]));
  const { baseUrl, clientId, clientSecret } = canarySettings(pos)['toast']?.[0]?.() ?? {};
  const ofApplication = { baseUrl, clientId, clientSecret };
  const bodies = new Map<string, unknown[]>([
    ['PUT /locations/:locationId', [settings, wrong].map((each) => ({ integration, settings: each, groups: ['all'] }))],
    ['PATCH /locations/:locationId', [settings, wrong].map((each) => ({ settings: each }))],
    ['PUT /applications/:name', [ofApplication, wrong].map((each) => ({ integration: 'toast', settings: each }))],
    ['POST /locations/:locationId/certify', [{ seconds: 1 }]],
  ]);
  return bodies.get(route) ?? [bodiesAt(locationId)[route]];
}

/** What the test has to send is not asked of any reader. */
async function everyPlace(): Promise<Record<string, string[]>> {
  return {
    answers,
    logs: system.logged,
    messages: ['order-status', 'kitchens', 'attention'].flatMap((topic) =>
      system.pubsub.published(topic).map(({ data, attributes }) => `${data.toString()} ${JSON.stringify(attributes)}`),
    ),
    rows: (await allRows(ownerPool)).map(({ place, text }) => `${place} ${text}`),
  };
}

describe('a canary in every secret of every provider', () => {
  it('is sent to the POS in orders, cancels, checks and connections, whatever the POS answers', async () => {
    for (pos.status of STATUSES) {
      const placed = await Promise.all(locations.map(({ locationId }) => system.placeOrder({ locationId })));
      orders.push(...placed.map(({ serviceOrderId, locationId }) => ({ serviceOrderId, locationId })));
      for (const { serviceOrderId } of placed) {
        await until(async () => {
          const placement = await system.placement(serviceOrderId);
          return [placement?.['problem'], placement?.['finished_at']].some(
            (each) => each !== null && each !== undefined,
          );
        });
        await ask('POST', `/orders/${serviceOrderId}/cancel`);
      }
      for (const { locationId } of locations) {
        for (const what of ['check', 'connect', 'test-order', 'disconnect', 'certify']) {
          await ask('POST', `/locations/${locationId}/${what}`, what === 'certify' ? { seconds: 1 } : undefined);
        }
      }
    }
    expect(system.logged.length).toBeGreaterThan(100);
  });

  it('comes back in webhooks that are answered 200 or 401', async () => {
    const keys = parseSettingsKeys(system.env['SETTINGS_KEY'] ?? '');
    for (const { locationId } of locations) {
      // As they are after the POS gave tokens.
      const [row] = await system.query('SELECT settings FROM locations WHERE location_id = $1', [locationId]);
      const settings = await unseal(keys, String(row?.['settings']), placeOfSettings(locationId));
      const { serviceOrderId = '' } = orders.find((each) => each.locationId === locationId) ?? {};
      const texts = JSON.stringify(settings);
      const order = { thirdPartyReference: serviceOrderId, status: 'READY', reason: texts };
      const url = await system.webhookUrl(locationId);
      const body = { eventType: 'order.status', order, echo: settings };
      expect([200, 401]).toContain((await post(url, body, { authorization: `Basic ${texts.slice(0, 50)}` })).status);
      await ask('GET', '/webhooks?limit=1');
      const [token] = await system.query('SELECT token_id FROM webhook_tokens WHERE location_id = $1', [locationId]);
      await ask('DELETE', `/locations/${locationId}/tokens/${String(token?.['token_id'])}`);
    }
  });

  const readWebhooks = async (): Promise<{ webhookId: string; locationId: string }[]> =>
    (await system.query('SELECT id, location_id FROM webhooks')).map((row) => ({
      webhookId: String(row['id']),
      locationId: String(row['location_id']),
    }));

  it('is sent to every route that changes something, by each role', async () => {
    const webhooks = await readWebhooks();
    const changed = new Set<string>();
    for (const [nth, roles] of ROLE_SETS.entries()) {
      const rights = [{ roles, locations: null, locationGroups: [] }];
      const token = await nameToken(system, `changes of ${roles.join(' ')}`, roles);
      pos.status = STATUSES[nth % STATUSES.length] ?? 200;
      for (const route of Object.keys(bodiesAt(''))) {
        const [method = '', path = ''] = route.split(' ');
        const isOfOne = /:(location|serviceOrder|webhook)Id/.test(path);
        const mayWrite = has({ rights }, ACCESS[route]?.role ?? 'admin', null);
        // One refusal of each route is enough, and so is one change of what belongs to no location.
        for (const at of mayWrite && isOfOne ? locations : locations.slice(0, 1)) {
          const none = { sessionId: randomUUID(), grantId: randomUUID(), tokenId: randomUUID(), name: 'ours' };
          const [order, webhook] = [orders, webhooks].map((all) =>
            all.find((each) => each.locationId === at.locationId),
          );
          const ids = new Map<string, string>(Object.entries({ ...none, ...order, ...webhook, ...at }));
          const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => ids.get(name) ?? 'none');
          for (const body of bodiesOf(route, at)) {
            if ((await ask(method, filled, body, token)) !== 403) changed.add(route);
          }
        }
      }
    }
    expect([...changed].toSorted()).toEqual(Object.keys(bodiesAt('')).toSorted());
  });

  it('is looked for in the answers of all operations to all roles', async () => {
    const webhooks = await readWebhooks();
    const reads = Object.keys(ACCESS).filter((route) => route.startsWith('GET ') && !route.endsWith('/live'));
    for (const roles of ROLE_SETS) {
      const token = await nameToken(system, `all of ${roles.join(' ')}`, roles);
      for (const route of [...reads, ...Object.keys(FOR_PROGRAMS)]) {
        const path = route.replace('GET ', '');
        const asked = [...locations, ...orders, ...webhooks].flatMap((about) => {
          const ids = new Map<string, unknown>(Object.entries(about));
          const names = Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => name);
          const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => String(ids.get(name)));
          return names.every((name) => ids.get(name) !== undefined) ? [filled] : [];
        });
        for (const each of new Set(asked)) await ask('GET', each, undefined, token);
      }
    }
    expect(answers.length).toBeGreaterThan(500);
  });

  it('is not in any answer, log line or row, neither plain nor encoded', async () => {
    for (const [place, texts] of Object.entries(await everyPlace())) {
      expect(texts.length, place).toBeGreaterThan(0);
      expect(
        texts.filter((text) => findCanaries(text).length > 0).map((text) => text.slice(0, 600)),
        place,
      ).toEqual([]);
    }
  });

  it('would be found in each encoding in an answer, a log line or a row', async () => {
    for (const form of Object.values(disguisesOf(`of ${secret('leak')} again`))) {
      answers.push(form);
      system.logged.push(form);
      await system.query(
        'INSERT INTO operator_tokens (token_id, sha256, name, roles) VALUES (gen_random_uuid(), $1, $2, $3)',
        [Buffer.from(`${secret('bytes')} ${form}`), form, ['viewer']],
      );
      const { answers: told, logs = [], rows = [] } = await everyPlace();
      for (const texts of [told ?? [], logs, rows])
        expect(texts.filter((text) => findCanaries(text).length > 0)).not.toEqual([]);
      answers.pop();
      system.logged.pop();
      await system.query('DELETE FROM operator_tokens WHERE name = $1', [form]);
    }
  });
});
