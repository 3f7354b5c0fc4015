import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { PubSub } from '@google-cloud/pubsub';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startFaultProxy, type FaultProxy } from '../../../tools/chaos/fault-proxy.ts';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { resumeLocation } from '../../../src/core/kitchens/pause-location.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import { parseSettingsKeys, seal } from '../../../src/core/locations/settings-key.ts';
import { issueToken } from '../../../src/core/locations/webhook-tokens.ts';
import { drainSpill } from '../../../src/core/spill/drain-spill.ts';
import { decryptSpilled, sealSpilled } from '../../../src/core/spill/spill-webhook.ts';
import { inTransaction } from '../../../src/core/postgres/transactions.ts';
import { eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { registry } from '../../../src/providers/index.ts';
import { startDeliverect, type Deliverect } from '../../../world/pos/deliverect/start-deliverect.ts';
import { allowedHosts } from '../../../world/network/allowed-loopback.ts';
import { OPERATOR_TOKEN, askOperator } from '../../../world/system/ask-operator.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { PROJECT, post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';
import { whileLocked } from '../../support/while-locked.ts';

const SETTINGS_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;
/** Pub/Sub has more time here: this machine may be slow. */
const LIMITS = { answerMs: 10_000, commitMs: 800, perSecond: 100 };
const env = {
  SETTINGS_KEY,
  SPILL_TOPIC: 'spill',
  OPERATOR_TOKEN,
  BODY_BUDGET: '8388608',
};

/** Past the proxy: for what happens to Postgres while this process does not reach it. */
let direct: pg.Pool;
let proxy: FaultProxy;
let system: System;
let webhook: string;
/** Of locations and tokens to which something happens. */
let ofRevoked: string;
let ofGone: string;
let ofMoved: string;
let kitchen: Deliverect;
let ofKitchen: string;

beforeAll(async () => {
  const databaseUrl = await createDatabase();
  direct = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  proxy = await startFaultProxy({ targetPort: Number(new URL(databaseUrl).port) });
  const tokens = await Promise.all(['club-1', 'revoked', 'gone', 'moved'].map((id) => openLocation(id)));
  kitchen = await startDeliverect();
  const { token } = await openLocation('kitchen', 'deliverect', kitchen.settings);
  system = await startSystem({ databaseUrl: proxy.through(databaseUrl), env, limits: LIMITS });
  [webhook = '', ofRevoked = '', ofGone = '', ofMoved = ''] = tokens.map(
    ({ token, locationId }) => `${system.urls[0]}/webhook/standard/${locationId}?token=${token}`,
  );
  ofKitchen = `${system.urls[0]}/webhook/deliverect/kitchen?token=${token}`;
});
afterAll(async () => {
  await system?.stop();
  await kitchen?.stop();
  await proxy?.stop();
  await direct?.end();
});

/** Before the system starts, which reads all tokens then. */
async function openLocation(
  locationId: string,
  integration = 'standard',
  settings: object = { ordersUrl: 'http://127.0.0.1:9/orders', unsigned: true },
): Promise<{ locationId: string; token: string }> {
  const keys = parseSettingsKeys(SETTINGS_KEY);
  const rules = { registry, keys, publicUrl: undefined, allowedHosts };
  await putLocation(direct, rules, { locationId, integration, settings });
  return { locationId, token: (await issueToken(direct, { locationId })).token };
}

/** As if its host were gone: nothing answers, and nothing is reset. */
const vanish = (): void => void (proxy.faults.blackhole = true);
const goDown = (): void => {
  proxy.refuse();
  proxy.resetAll();
};
async function comeBack(): Promise<void> {
  delete proxy.faults.blackhole;
  await proxy.accept().catch(() => {});
  await until(async () => (await health()).database === 'up');
}
async function health(): Promise<{ ready: boolean; database: string }> {
  return (await (await fetch(`${system.urls[0]}/readyz`)).json()) as { ready: boolean; database: string };
}
const stored = async (id: unknown): Promise<Record<string, unknown>[]> =>
  (await direct.query('SELECT outcome, reason, cause, body FROM webhooks WHERE id = $1', [id])).rows;
const untilStored = async (id: unknown): Promise<boolean> => until(async () => (await stored(id)).length > 0);
/** Postgres comes back, and has these webhooks soon. */
async function backWith(...ids: readonly string[]): Promise<void> {
  await comeBack();
  await Promise.all(ids.map(untilStored));
}
afterEach(async () => {
  system.pubsub.faults.publishError = undefined;
  system.pubsub.faults.publishHangs = false;
  await comeBack();
});

let orders = 0;
async function newOrder(locationId = 'club-1'): Promise<string> {
  orders += 1;
  const serviceOrderId = `order-${orders}`;
  await system.seedOrder({ serviceOrderId, locationId });
  return serviceOrderId;
}

/** The id of a webhook that is answered 200 by way of the spill. */
async function spill(url: string, body: unknown): Promise<string> {
  const answer = await post(url, body);
  expect(answer).toMatchObject({ status: 200, body: { outcome: 'accepted' } });
  return String(answer.body['deliveryId']);
}
const spilled = (): readonly { data: Buffer; attributes: object }[] => system.pubsub.published('spill');
/** When the last spilled webhook came, by the process's clock. */
const lastReceivedAt = async (): Promise<Date> =>
  (await decryptSpilled(parseSettingsKeys(SETTINGS_KEY), spilled().at(-1)?.data ?? Buffer.alloc(0))).receivedAt;
async function publish(data: Buffer): Promise<void> {
  const client = new PubSub({ projectId: PROJECT });
  await client.topic('spill').publishMessage({ data });
  await client.close();
}
async function drained(outcome: string): Promise<number> {
  const authorization = `Bearer ${OPERATOR_TOKEN}`;
  const text = await (await fetch(`${system.operatorUrls[0]}/metrics`, { headers: { authorization } })).text();
  return Number(new RegExp(`^expediter_spill_drained_total\\{outcome="${outcome}"\\} (\\d+)`, 'm').exec(text)?.[1]);
}
const historyOf = async (serviceOrderId: string): Promise<unknown[]> =>
  system.query('SELECT status, outcome FROM status_events WHERE service_order_id = $1', [serviceOrderId]);

describe.each([
  ['vanishes', vanish],
  ['goes down', goDown],
])('when Postgres %s', (_how, goAway) => {
  it('each webhook is accepted, and applied when Postgres is back', async () => {
    const serviceOrderId = await newOrder();
    goAway();
    const ids: string[] = [];
    for (const each of ['received', 'ready']) {
      ids.push(await spill(webhook, statusWebhook({ serviceOrderId, status: each })));
    }
    const asked = vi.spyOn(pg.Client.prototype, 'query');
    ids.push(await spill(webhook, statusWebhook({ serviceOrderId, status: 'completed' })));
    const names = asked.mock.calls.map(([query]) => (query as { name?: string }).name);
    expect(names.join(), 'known to be away by now, Postgres is not asked any more').not.toContain('apply-');
    asked.mockRestore();
    await backWith(...ids);
    await until(() => system.live(serviceOrderId).at(-1)?.status === 'completed');
    const live = system.live(serviceOrderId);
    for (const { appliedAt, firstReceivedAt = appliedAt } of live) expect(firstReceivedAt < appliedAt).toBe(true);
  });
});

describe('while Postgres is away', () => {
  it('a webhook is answered 500 if Pub/Sub is also away', async () => {
    vanish();
    system.pubsub.faults.publishHangs = true;
    const hung = await post(webhook, statusWebhook({ serviceOrderId: 'x', status: 'ready' }));
    expect(hung).toMatchObject({ status: 500, body: { error: 'send it again later' } });
    expect(hung.headers.get('retry-after')).toBe('1');
    system.pubsub.faults.publishHangs = false;
    system.pubsub.faults.publishError = () => status.UNAVAILABLE;
    const refused = await post(webhook, statusWebhook({ serviceOrderId: 'x', status: 'ready' }));
    expect(refused.status).toBe(500);
  });

  it('encrypted webhooks count against the same byte limit as bodies if Pub/Sub hangs', async () => {
    goDown();
    system.pubsub.faults.publishHangs = true;
    const begun = system.logged.length;
    const answers = await Promise.all(Array.from({ length: 80 }, () => post(webhook, 'x'.repeat(100_000))));
    expect(new Set(answers.map(({ status: code }) => code))).toEqual(new Set([500]));
    expect(system.logged.slice(begun).join('')).toContain('too many bytes are held already');
  });

  it('a token that cannot be checked is answered 500 and not spilled, and a wrong token is answered 401', async () => {
    vanish();
    const before = spilled().length;
    const with_ = (token: string): string => webhook.replace(/token=.*/, `token=${token}`);
    expect((await post(with_(makeToken('exw_')), {})).status).toBe(500);
    expect((await post(with_('mistyped'), {})).status).toBe(401);
    expect((await post(webhook.replace('club-1', 'club-2'), {})).status).toBe(401);
    expect(spilled().length).toBe(before);
  });

  it('GET /spill shows how many webhooks wait, and since when', async () => {
    const operator = await askOperator(system.operatorUrls[0] ?? '');
    // What the tests before have spilled.
    await until(async () => (await operator.get('/spill')).body['waiting'] === 0);
    const before = new Date().toISOString();
    goDown();
    await spill(webhook, { eventType: 'menu.changed' });
    const last = await spill(webhook, { eventType: 'menu.changed' });
    const { body } = await operator.get('/spill');
    expect(body).toMatchObject({ database: 'down', oldestAt: expect.stringMatching(/Z$/) });
    // Pub/Sub may deliver late what it seemed to lose in the tests before.
    expect(body['waiting']).toBeGreaterThanOrEqual(2);
    expect(String(body['oldestAt']) > before).toBe(true);
    expect((await operator.get('/locations')).status).toBe(503);
    await backWith(last);
    expect((await operator.get('/spill')).body).toEqual({ database: 'up', waiting: 0, oldestAt: null });
  });

  it('a spilled message is unreadable without SETTINGS_KEY', async () => {
    goDown();
    const before = spilled().length;
    await spill(webhook, { eventType: 'order.status', note: 'for Ada Lovelace' });
    const token = new URL(webhook).searchParams.get('token') ?? '?';
    const [message] = spilled().slice(before);
    const data = message?.data.toString() ?? '';
    const opened = data.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
    for (const text of ['Ada Lovelace', token, 'club-1', 'standard'])
      expect([data, ...opened].join()).not.toContain(text);
    expect(message?.attributes).toEqual({});
  });

  it('a webhook with a body that is too large is stored as dropped when Postgres is back', async () => {
    goDown();
    const id = await spill(webhook, 'x'.repeat(1_100_000));
    await backWith(id);
    expect(await stored(id)).toMatchObject([{ outcome: 'dropped', cause: { code: 'too_large' } }]);
  });

  it("a webhook that came before its token's revocation is applied, and a later webhook is stored as dropped", async () => {
    const [serviceOrderId, late] = [await newOrder('revoked'), await newOrder('revoked')];
    vanish();
    const before = await spill(ofRevoked, statusWebhook({ serviceOrderId, status: 'ready' }));
    await direct.query(
      `UPDATE webhook_tokens SET revoked_at = $1::timestamptz + interval '1 ms' WHERE location_id = 'revoked'`,
      [await lastReceivedAt()],
    );
    const after = await spill(ofRevoked, statusWebhook({ serviceOrderId: late, status: 'ready' }));
    await backWith(before, after);
    expect(await stored(before)).toMatchObject([{ outcome: 'applied' }]);
    expect(await stored(after)).toMatchObject([{ outcome: 'dropped', cause: { code: 'token_revoked' } }]);
    expect(await historyOf(late)).toEqual([]);
    await until(async () => (await post(ofRevoked, {})).status === 401);
  });

  it('webhooks of a location that is removed or moved to another POS are stored as dropped', async () => {
    vanish();
    const gone = await spill(ofGone, statusWebhook({ serviceOrderId: 'x', status: 'ready' }));
    const moved = await spill(ofMoved, statusWebhook({ serviceOrderId: 'x', status: 'ready' }));
    await direct.query(`DELETE FROM locations WHERE location_id = 'gone'`);
    await direct.query(`UPDATE locations SET integration = 'square' WHERE location_id = 'moved'`);
    await backWith(gone, moved);
    expect(await stored(gone)).toMatchObject([{ outcome: 'dropped', cause: { code: 'no_location' } }]);
    const cause = { code: 'other_integration', integration: 'square' };
    expect(await stored(moved)).toMatchObject([{ outcome: 'dropped', cause }]);
  });
});

it('a webhook that was committed and spilled is applied once', async () => {
  const serviceOrderId = await newOrder();
  proxy.faults.cutAfterCommit = ({ statement }) => (statement.includes('apply') ? 'answered' : undefined);
  const known = await drained('known');
  const id = await spill(webhook, statusWebhook({ serviceOrderId, status: 'ready' }));
  proxy.faults.cutAfterCommit = undefined;
  expect(await stored(id)).toMatchObject([{ outcome: 'applied' }]);
  await until(async () => (await drained('known')) > known);
  expect(await historyOf(serviceOrderId)).toEqual([{ status: 'ready', outcome: 'applied' }]);
});

it('a message whose commit fails is delivered again, and applied', async () => {
  const serviceOrderId = await newOrder();
  goDown();
  const id = await spill(webhook, statusWebhook({ serviceOrderId, status: 'ready' }));
  const putBack = await drained('put_back');
  proxy.faults.cutAfterCommit = ({ statement }) => (statement.includes('apply') ? 'unsent' : undefined);
  await comeBack();
  await until(async () => (await drained('put_back')) > putBack);
  expect(await stored(id)).toEqual([]);
  proxy.faults.cutAfterCommit = undefined;
  await untilStored(id);
  expect(await historyOf(serviceOrderId)).toEqual([{ status: 'ready', outcome: 'applied' }]);
});

it('a message that is delivered five times is applied once', async () => {
  const serviceOrderId = await newOrder();
  goDown();
  const id = await spill(webhook, statusWebhook({ serviceOrderId, status: 'ready' }));
  const message = spilled().at(-1);
  for (let nth = 0; nth < 4; nth += 1) await publish(message?.data ?? Buffer.alloc(0));
  const known = await drained('known');
  await backWith(id);
  await until(async () => (await drained('known')) >= known + 4);
  expect(await stored(id)).toHaveLength(1);
  expect(await historyOf(serviceOrderId)).toEqual([{ status: 'ready', outcome: 'applied' }]);
});

it("a webhook is applied even if it waited longer than the retention, and is later deleted with its member's data", async () => {
  const serviceOrderId = await newOrder();
  goDown();
  await spill(webhook, statusWebhook({ serviceOrderId, status: 'ready' }));
  const keys = parseSettingsKeys(SETTINGS_KEY);
  const young = await decryptSpilled(keys, spilled().at(-1)?.data ?? Buffer.alloc(0));
  const receivedAt = new Date(Date.now() - 40 * 86_400_000);
  const id = `${receivedAt.getTime().toString(16).padStart(12, '0').replace(/.{8}/, '$&-')}-7000-8000-000000000001`;
  const body = Buffer.from(JSON.stringify(statusWebhook({ serviceOrderId, status: 'completed' })));
  await publish(await sealSpilled(keys, { ...young, id, receivedAt, body }));
  await backWith(id);
  expect(await stored(id)).toMatchObject([{ outcome: 'applied', body }]);
  expect(await inTransaction(direct, (client) => eraseOrders(client, [serviceOrderId]))).toBe(1);
  expect(await stored(id)).toMatchObject([{ body: Buffer.alloc(0) }]);
});

it('messages that arrive together are applied in the sequence of their webhooks', async () => {
  const keys = parseSettingsKeys(SETTINGS_KEY);
  const cameAt = [30, 10, 20];
  const sealing = cameAt.map((ms) =>
    sealSpilled(keys, {
      id: `00000000-00${ms}-7000-8000-000000000000`,
      locationId: 'nowhere',
      integration: 'standard',
      tokenId: randomUUID(),
      requestId: 'r',
      trace: undefined,
      receivedAt: new Date(ms),
      target: '/',
      token: 't',
      headers: {},
      body: Buffer.alloc(0),
      truncated: false,
    }),
  );
  const applied: number[] = [];
  const drain = drainSpill({
    keys,
    quota: { take: () => Promise.resolve('whole' as const) },
    publicUrl: '',
    bodyLimit: 1_000,
    pool: direct,
    decryptSettings: () => Promise.reject(new Error('there is no such location')),
    accept: ({ receivedAt }) => {
      applied.push(receivedAt.getTime());
      return Promise.resolve({ outcome: 'dropped', serviceOrderIds: [] });
    },
    observe() {},
    log: { error() {} },
  });
  for (const data of await Promise.all(sealing)) drain.receive({ data, publishedAt: 0, ack() {}, nack() {} });
  await until(() => applied.length === 3);
  expect(applied).toEqual([10, 20, 30]);
  await drain.stop();
});

it('a message that no key decrypts is logged and delivered again, and delays no other message', async () => {
  const serviceOrderId = await newOrder();
  const unopened = await drained('not_decrypted');
  await publish(Buffer.from('not sealed by us'));
  await until(async () => (await drained('not_decrypted')) >= unopened + 2); // It came again.
  goDown();
  const id = await spill(webhook, statusWebhook({ serviceOrderId, status: 'ready' }));
  await backWith(id);
  expect(system.logged.join('')).toContain('cannot be decrypted');
});

it('a webhook that waits for a lock longer than its sender waits is spilled, and applied when the lock is free', async () => {
  const serviceOrderId = await newOrder();
  const id = await whileLocked(direct, serviceOrderId, async () => {
    const spilled = await spill(webhook, statusWebhook({ serviceOrderId, status: 'ready' }));
    // A slow machine may take it for away for a moment.
    await until(async () => (await health()).database === 'up');
    return spilled;
  });
  await untilStored(id);
  expect(await historyOf(serviceOrderId)).toEqual([{ status: 'ready', outcome: 'applied' }]);
});

describe('a kitchen that stops taking orders during the outage', () => {
  const tell = async (status: string): Promise<string> => {
    const { headers, body } = kitchen.signAbout({ status });
    const answer = await post(ofKitchen, body, headers);
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'accepted' } });
    return String(answer.body['deliveryId']);
  };
  const paused = async (): Promise<boolean> => {
    const { rows } = await direct.query(
      `SELECT FROM locations WHERE location_id = 'kitchen' AND pos_paused_until > now()`,
    );
    return rows.length > 0;
  };

  it('is paused when its webhook is applied', async () => {
    goDown();
    const id = await tell('PAUSED');
    await backWith(id);
    expect(await stored(id)).toMatchObject([{ outcome: 'applied' }]);
    expect(await paused()).toBe(true);
  });

  it('is not paused if an operator resumed it after the webhook came', async () => {
    goDown();
    const id = await tell('PAUSED');
    // A process knows Postgres's clock to some milliseconds; an operator is not that quick.
    const receivedAt = await lastReceivedAt();
    await until(async () => (await direct.query('SELECT WHERE now() > $1', [receivedAt])).rowCount === 1);
    await resumeLocation(direct, 'kitchen');
    await backWith(id);
    expect(await stored(id)).toMatchObject([{ outcome: 'stale' }]);
    expect(await paused()).toBe(false);
  });
});

it('a text that was encrypted for another place is refused as a spilled webhook', async () => {
  const keys = parseSettingsKeys(SETTINGS_KEY);
  const sealed = Buffer.from(await seal(keys, {}, 'locations/club-1'));
  await expect(decryptSpilled(keys, sealed)).rejects.toThrow('it was encrypted for locations/club-1, but is in spill');
});
