import { PubSub, type Topic } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import { migrate } from '../../src/database/migrate.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { runMain, type MainProcess } from '../../world/processes/run-main.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import type { HttpServer } from '../../world/network/serve-http.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { startPubsub, type Pubsub } from '../../world/pubsub/start-pubsub.ts';
import {
  PROJECT,
  SERVICE_ACCOUNT,
  post,
  startSystem,
  statusWebhook,
  type System,
} from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

const ORDERS = 40;
/** As `docs/scaling.md` shows: the second filter takes everything that the first does not. */
const FILTERS = { north: 'attributes.installation = "north"', south: 'NOT attributes.installation = "north"' };
type Name = keyof typeof FILTERS;
const NAMES = ['north', 'south'] as const;

type Installation = System & {
  postgres: Postgres;
  pos: Pos;
  main: MainProcess;
  /** Its own host name, at the balancer that all installations share. */
  url: string;
  webhook: string;
};

let pubsub: Pubsub;
let balancer: HttpServer;
let placed: Topic;
let client: PubSub;
const installations = new Map<Name, Installation>();
const of = (name: Name): Installation => installations.get(name) as Installation;

beforeAll(async () => {
  pubsub = await startPubsub();
  client = new PubSub({ projectId: PROJECT, apiEndpoint: pubsub.host, emulatorMode: true });
  [placed] = await client.createTopic('order-placed');
  // Two names of one address stand for two names in the DNS.
  const hostOf = { north: '127.0.0.1', south: 'localhost' };
  balancer = await balanceLoad(
    () => [...installations.values()].map(({ main }) => main.url),
    (target, host) =>
      NAMES.some((name) => host.startsWith(hostOf[name]) && installations.get(name)?.main.url === target),
  );
  for (const name of NAMES) {
    const url = `http://${hostOf[name]}:${balancer.port}`;
    installations.set(name, await install(name, url));
    await placed.createSubscription(`${name}-orders`, {
      filter: FILTERS[name],
      pushEndpoint: `${url}/pubsub/push`,
      oidcToken: { serviceAccountEmail: SERVICE_ACCOUNT, audience: `${url}/pubsub/push` },
    });
  }
});
afterAll(async () => {
  for (const { main, postgres, pos, stop } of installations.values()) {
    main.child.kill('SIGKILL');
    await Promise.all([stop(), pos.stop()]);
    await postgres.stop();
  }
  await client?.close();
  await Promise.all([balancer?.stop(), pubsub?.stop()]);
});

async function install(name: Name, url: string): Promise<Installation> {
  const [postgres, pos] = await Promise.all([startPostgres(), startPos()]);
  await migrate(postgres.url);
  await client.createTopic(`${name}-status`);
  const env = { PUSH_AUDIENCE: `${url}/pubsub/push`, STATUS_TOPIC: `${name}-status` };
  const system = await startSystem({ databaseUrl: postgres.url, processes: 0, pubsub, env });
  await system.addLocation(`${name}-1`, { ordersUrl: pos.ordersUrl });
  system.urls.push(url);
  const webhook = await system.webhookUrl(`${name}-1`);
  return Object.assign(system, { postgres, pos, main: await runMain(system.env), url, webhook });
}

/** Puts an order on the platform, which says in an attribute whose it is. */
async function order(name: Name, nth: number): Promise<string> {
  const serviceOrderId = `${name}-order-${nth}`;
  of(name).platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId, locationId: `${name}-1` }));
  await placed.publishMessage({ json: { orderId: serviceOrderId }, attributes: { installation: name } });
  return serviceOrderId;
}

const ready = (name: Name, serviceOrderId: string): Promise<number> =>
  post(of(name).webhook, statusWebhook({ serviceOrderId, status: 'READY' })).then(({ status }) => status);

const sentBy = async (name: Name): Promise<string[]> =>
  (await of(name).query(`SELECT service_order_id FROM placements WHERE state = 'sent' ORDER BY 1`)).map((row) =>
    String(row['service_order_id']),
  );

it('two installations behind one balancer and one topic never mix their orders', async () => {
  const orders = { north: [] as string[], south: [] as string[] };
  for (let nth = 0; nth < ORDERS; nth += 1) {
    for (const name of NAMES) orders[name].push(await order(name, nth));
  }
  for (const name of NAMES) {
    await until(async () => (await sentBy(name)).length >= ORDERS);
    for (const each of orders[name]) expect(await ready(name, each)).toBe(200);
    const tickets = of(name).pos.tickets.map(({ serviceOrderId }) => serviceOrderId);
    expect(tickets.toSorted()).toEqual(orders[name].toSorted());
    expect(await of(name).query('SELECT count(*)::int AS rows FROM placements')).toEqual([{ rows: ORDERS }]);
    expect(await of(name).query('SELECT count(*)::int AS rows FROM webhooks')).toEqual([{ rows: ORDERS }]);
  }
  // Each topic has the messages of its own orders, in order.
  for (const name of NAMES) {
    const steps = (id: string): unknown[] =>
      pubsub
        .published(`${name}-status`)
        .filter(({ attributes }) => attributes['serviceOrderId'] === id)
        .map(({ data }) => (JSON.parse(data.toString()) as LiveMessage).sequence);
    for (const id of orders[name]) await until(() => steps(id).length === 3);
    for (const id of orders[name]) expect(steps(id)).toEqual([1, 2, 3]);
    expect(pubsub.published(`${name}-status`)).toHaveLength(3 * ORDERS);
  }

  // A webhook at the wrong installation, and a signal of the other subscription, are refused.
  const astray = of('north').webhook.replace(of('north').url, of('south').url);
  expect((await post(astray, statusWebhook({ serviceOrderId: 'north-order-0', status: 'READY' }))).status).toBe(401);
  const token = await pubsub.signPushToken({
    aud: `${of('north').url}/pubsub/push`,
    email: SERVICE_ACCOUNT,
    email_verified: true,
  });
  const push = await post(
    `${of('south').url}/pubsub/push`,
    { message: { attributes: { orderId: 'north-order-1' }, messageId: '1' } },
    { authorization: `Bearer ${token}` },
  );
  expect(push.status).toBe(401);

  // One dies, with its Postgres, under load.
  const answers: number[] = [];
  const over = new AbortController();
  const load = (async () => {
    for (let nth = 0; !over.signal.aborted || nth < 100; nth += 1) {
      answers.push(await ready('south', orders.south[nth % ORDERS] ?? ''));
    }
  })();
  await until(() => answers.length > 20);
  of('north').main.child.kill('SIGKILL');
  await of('north').postgres.kill();
  await until(async () => (await ready('north', 'north-order-0')) === 503);
  const late = await order('south', ORDERS);
  const waits = await order('north', ORDERS);
  await until(async () => (await sentBy('south')).includes(late));
  over.abort();
  await load;
  expect(answers.length).toBeGreaterThanOrEqual(100);
  expect(new Set(answers)).toEqual(new Set([200]));

  // Its signal waits at Pub/Sub until it is back.
  await of('north').postgres.restart();
  Object.assign(of('north'), { main: await runMain(of('north').env) });
  await until(async () => (await sentBy('north')).includes(waits));
  expect(of('north').pos.tickets.filter(({ serviceOrderId }) => serviceOrderId === waits)).toHaveLength(1);
});
