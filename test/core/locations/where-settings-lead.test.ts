import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { refuseWhiteSpace } from '../../../src/core/locations/where-settings-lead.ts';
import { deliverect } from '../../../src/providers/deliverect/index.ts';
import { askOperator, OPERATOR_TOKEN, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

const HERE = 'https://pos.example.com';
const ELSEWHERE = 'https://evil.example.com';

/** A POS with URLs of any name at any depth, and with one that is no longer a text when it is used. */
const nested: Provider = {
  integration: 'nested',
  settings: z.strictObject({
    key: z.string(),
    server: z.strictObject({ at: z.url(), pin: z.string().optional() }),
    base: z.url().prefault('https://default.example.com'),
    parts: z
      .url()
      .transform((text) => ({ host: new URL(text).host }))
      .optional(),
  }),
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook: () => [],
};
const loose: Provider = { ...nested, integration: 'loose', settings: z.looseObject({}) };

let stage: Stage;
/** An integrator of all locations, and one of the group `ours`. */
let all: Operator;
let scoped: Operator;

beforeAll(async () => {
  stage = await startStage({
    providers: [nested, loose],
    env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test' },
  });
  all = await askOperator(stage.app);
  scoped = await askOperator(stage.app, await nameToken(stage, 'ours', ['integrator'], [], ['ours']));
});
afterAll(() => stage?.stop());

const put = (
  by: Operator,
  id: string,
  integration: string,
  settings: object,
  groups = ['ours'],
): Promise<OperatorAnswer> => by.send('PUT', `/locations/${id}`, { integration, settings, groups });
const patch = (by: Operator, id: string, settings: object, query = ''): Promise<OperatorAnswer> =>
  by.send('PATCH', `/locations/${id}${query}`, { settings });
const rowOf = async (id: string): Promise<Record<string, unknown> | undefined> =>
  (await stage.query('SELECT settings, target_sha256 FROM locations WHERE location_id = $1', [id]))[0];
/** Expects that a change is refused with these words, also when dry, and that the location stays as it is. */
const refused = async (by: Operator, id: string, settings: object, detail: RegExp): Promise<void> => {
  const before = await rowOf(id);
  for (const query of ['', '?dryRun=true']) {
    expect(await patch(by, id, settings, query)).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(detail) as string },
    });
  }
  expect(await rowOf(id)).toEqual(before);
};

it('a URL at another host than before, or at another path of it, is a warning', async () => {
  const settings = { key: 'k', server: { at: HERE, pin: 'p' }, base: HERE };
  expect((await put(all, 'moves', 'nested', settings)).body).toMatchObject({ created: true, warnings: [] });
  const warned = {
    warnings: [`Base leads elsewhere than before: to ${ELSEWHERE} instead of ${HERE}. Is that right?`],
  };
  const moved = { ...settings, base: ELSEWHERE };
  expect((await patch(all, 'moves', moved, '?dryRun=true')).body).toMatchObject(warned);
  expect((await put(all, 'moves', 'nested', moved)).body).toMatchObject(warned);
  expect((await patch(all, 'moves', { base: `${ELSEWHERE}/v2` })).body).toMatchObject({
    warnings: [`Base leads to another path of ${ELSEWHERE} than before. Is that right?`],
  });
  expect((await patch(all, 'moves', { key: 'k2' })).body).toMatchObject({ warnings: [] });
  expect((await put(all, 'moves', 'loose', { base: HERE })).body).toMatchObject({ warnings: [] });
});

describe('stored secrets stay at their host', () => {
  const settings = { key: 'the-key', server: { at: HERE, pin: 'the-pin' }, base: HERE };
  beforeAll(async () => {
    expect((await put(all, 'nested-1', 'nested', settings)).status).toBe(201);
  });

  it('whatever characters are around or inside the URL', async () => {
    for (const blank of [' ', '\n', '\u00a0', '\ufeff', '\u0001', '\u200b']) {
      await refused(all, 'nested-1', { base: blank + ELSEWHERE }, /base.*(white space|is wrong)/);
      await refused(all, 'nested-1', { base: HERE + blank }, /base.*(white space|is wrong)/);
    }
    for (const url of [ELSEWHERE.replace('tt', 't\tt'), ELSEWHERE.toUpperCase(), 'https:evil.example.com'])
      await refused(all, 'nested-1', { base: url }, /base may lead to another host.*: key, server/);
  });

  it('at any depth of the settings, when a default replaces a URL, and when a URL cannot be read', async () => {
    const key = 'another-key';
    await refused(all, 'nested-1', { server: { at: ELSEWHERE } }, /server\.at may lead to another host.*: key, server/);
    await refused(all, 'nested-1', { key, server: { at: ELSEWHERE } }, /another host.*: server/);
    await refused(all, 'nested-1', { base: null }, /base may lead to another host.*: key, server/);
    await refused(all, 'nested-1', { parts: HERE }, /parts\.host may lead to another host/);
    const moved = { ...settings, key, server: { at: ELSEWHERE, pin: 'p' }, parts: HERE };
    expect((await patch(all, 'nested-1', moved)).status).toBe(200);
    expect((await patch(all, 'nested-1', { ...settings, parts: null })).status).toBe(200);
  });

  it('when the stored settings do not fit the integration', async () => {
    await put(all, 'nested-2', 'loose', { key: 'the-key', server: 'none' });
    await stage.query(`UPDATE locations SET integration = 'nested' WHERE location_id = 'nested-2'`);
    await refused(all, 'nested-2', { server: { at: ELSEWHERE } }, /another host.*: key$/);
    expect((await patch(all, 'nested-2', { key: 'new', server: { at: HERE } })).status).toBe(200);
  });

  it('because a URL with a private host is refused in any spelling', async () => {
    for (const url of ['\u0001https://10.0.0.1/', 'ht\ntps://10.0.0.1'])
      expect(await put(all, 'nested-3', 'nested', { ...settings, base: url })).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining('is not allowed') as string },
      });
    expect(
      await all.send('PATCH', '/locations/nested-1', { backOfficeUrl: 'https:user:word@pos.example.com' }),
    ).toMatchObject({ status: 400, body: { issues: [{ path: 'backOfficeUrl' }] } });
  });
});

it('the search for white space reads each value of an item map at most five times', () => {
  let reads = 0;
  const itemMap = Object.defineProperties(
    {},
    Object.fromEntries(
      Array.from({ length: 1_000 }, (_, nth) => [
        `item-${nth}`,
        { enumerable: true, get: () => ((reads += 1), `p-${nth}`) },
      ]),
    ),
  );
  const after = { itemMap };
  refuseWhiteSpace({ provider: deliverect, used: after, before: {}, after, isScoped: true });
  expect(reads).toBeGreaterThanOrEqual(1_000);
  expect(reads).toBeLessThanOrEqual(5_000);
});

describe("the restaurant in a location's settings", () => {
  const SECRETS = { clientId: 'client', clientSecret: 'secret', webhookSecret: 'of-webhooks' };
  const toast = (restaurantGuid: string): object => ({
    ...SECRETS,
    baseUrl: HERE,
    restaurantGuid,
    diningOptionGuids: { pickup: randomUUID(), delivery: randomUUID() },
  });

  it('can be changed by an integrator of a group only if all secrets are given again, and never to that of another location', async () => {
    const [ours, theirs, free] = [randomUUID(), randomUUID(), randomUUID()];
    expect((await put(all, 'toast-ours', 'toast', toast(ours))).status).toBe(201);
    expect((await put(all, 'toast-theirs', 'toast', toast(theirs), ['theirs'])).status).toBe(201);
    await refused(scoped, 'toast-ours', { restaurantGuid: free }, /restaurantGuid.*: clientId, clientSecret, webhookS/);
    const { webhookSecret: _, ...some } = SECRETS;
    await refused(scoped, 'toast-ours', { restaurantGuid: free, ...some }, /restaurantGuid.*: webhookSecret/);
    for (const same of [theirs, theirs.toUpperCase()]) {
      await refused(scoped, 'toast-ours', { restaurantGuid: same, ...SECRETS }, /restaurantGuid is that of another/);
      expect(await put(scoped, 'toast-ours', 'toast', toast(same))).toMatchObject({ status: 400 });
      expect(await put(scoped, 'ours:new', 'toast', toast(same))).toMatchObject({ status: 400 });
    }
    expect((await put(scoped, 'ours:new', 'toast', toast(free))).body).toMatchObject({ created: true, warnings: [] });
    // The target of the other location was noted, and is looked for again after a change.
    expect((await rowOf('toast-theirs'))?.['target_sha256']).toHaveLength(32);
    const next = randomUUID();
    expect((await patch(all, 'toast-theirs', { restaurantGuid: next })).status).toBe(200);
    await refused(scoped, 'toast-ours', { restaurantGuid: next, ...SECRETS }, /that of another location/);
    expect((await patch(scoped, 'toast-ours', { restaurantGuid: theirs, ...SECRETS })).status).toBe(200);
  });

  it('may be the restaurant of another location if an integrator of all locations stores it, and the answer warns', async () => {
    const guid = randomUUID();
    expect((await put(all, 'brand-1', 'toast', toast(guid))).body).toMatchObject({ warnings: [] });
    const warnings = ['The location brand-1 has the same restaurantGuid.'];
    expect((await put(all, 'brand-2', 'toast', toast(guid))).body).toMatchObject({ warnings });
    // What is so already is no change.
    expect((await put(scoped, 'brand-2', 'toast', toast(guid))).body).toMatchObject({ created: false, warnings: [] });
    expect((await patch(scoped, 'brand-2', { pauseMinutes: 5 })).status).toBe(200);
  });

  it("cannot be set by a group's integrator while the settings of any location cannot be decrypted", async () => {
    await put(all, 'sealed', 'deliverect', deliverect('61bcc34f657cc48c23eb60d5'), []);
    expect((await put(scoped, 'ours:link-1', 'deliverect', deliverect('a1'))).status).toBe(201);
    await stage.query(`UPDATE locations SET settings = 'x' || settings WHERE location_id = 'sealed'`);
    expect((await put(scoped, 'ours:link-2', 'deliverect', deliverect('a2'))).status).toBe(400);
    await stage.query(`DELETE FROM locations WHERE location_id = 'sealed'`);
    expect((await put(scoped, 'ours:link-2', 'deliverect', deliverect('a2'))).status).toBe(201);
  });
  const deliverect = (channelLinkId: string): object => ({
    clientId: 'client',
    clientSecret: 'secret',
    hmacSecret: 'secret-of-webhooks',
    channelName: 'channel',
    channelLinkId,
  });

  it('is given to only one of many simultaneous requests', async () => {
    const guid = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, nth) => put(scoped, `ours:once-${nth}`, 'toast', toast(guid))),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, ...Array(7).fill(400)]);
  });

  it('includes the path of a URL, because one host may serve several restaurants', async () => {
    const ordersUrl = `${HERE}/restaurants/1`;
    await put(all, 'bridge', 'standard', { ordersUrl, secret: `whsec_${Buffer.alloc(24).toString('base64')}` });
    await refused(scoped, 'bridge', { ordersUrl: `${HERE}/restaurants/2` }, /ordersUrl.*: secret/);
    expect((await patch(all, 'bridge', { ordersUrl: `${HERE}/restaurants/2` })).status).toBe(200);
  });

  it.each([
    ['toast', ['restaurantGuid']],
    ['deliverect', ['channelLinkId']],
    ['lightspeed-k', ['businessLocationId']],
    ['square', ['merchantId', 'locationId']],
  ])('is marked in the settings of %s, and the API does not show the mark', async (integration, names) => {
    const { aboutSetting } = await import('../../../src/core/locations/describe-settings.ts');
    const { registry } = await import('../../../src/providers/index.ts');
    const provider = registry.get(integration);
    const { properties } = z.toJSONSchema(provider!.settings, { io: 'input', unrepresentable: 'any' });
    const marked = Object.keys(properties ?? {}).filter((name) => aboutSetting(provider!, [name]).target !== undefined);
    expect(marked).toEqual(names);
    expect((await all.get('/providers')).text).not.toContain('"target"');
  });
});
