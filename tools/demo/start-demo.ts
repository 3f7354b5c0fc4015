import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfigOf } from '../../src/config/config.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import type { ShownOrder } from '../../src/core/orders/show-order.ts';
import type { ShownWebhook } from '../../src/core/replay/show-webhook.ts';
import { loadProviders } from '../../src/providers/index.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { until } from '../../world/processes/until.ts';
import type { Simulator, StartSimulator } from '../../world/pos/simulator.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { IN_DOUBT, startGateway, TILL } from './ask-restaurant.ts';
import { cancelOrders, type Cancelled } from './cancel-orders.ts';
import { cookOrders } from './cook-orders.ts';
import type { Endings } from './endings.ts';
import { fillMenu } from './fill-menu.ts';
import { followLive, type Live } from './follow-live.ts';
import { BUSY, BEHIND, keepBusy } from './keep-busy.ts';
import { loadSimulator } from './load-simulator.ts';
import { keepSecret } from './keep-secret.ts';
import type { Doors } from './doors.ts';
import { openHttp } from './open-http.ts';
import { openPubsub } from './open-pubsub.ts';
import { interruptPostgres, type Outage } from './interrupt-postgres.ts';
import { ownOrders } from './own-orders.ts';
import { ownPlatform } from './own-platform.ts';
import { placeName } from './places.ts';
import { placeOrders, type PlacedOrder, type PlaceOrder } from './place-orders.ts';
import { deleteDemoDatabase, prepareDemoDatabase } from './prepare-demo-database.ts';
import { serveTracker, type Tracker } from './serve-tracker.ts';
import { ALLOW_PRIVATE_HOSTS } from '../../world/network/allowed-loopback.ts';
import { runAgainOnChange } from './run-again-on-change.ts';
import { runService, WHERE, type RunService, type Service } from './run-service.ts';
import { BY_HAND, setUpByHand } from './set-up-by-hand.ts';
import { setUpLocation } from './set-up-location.ts';
import { showKitchen } from './show-kitchen.ts';
import { takeOrders, takeOwnOrders } from './take-orders.ts';
import type { Timeline } from './journey-lines.ts';
import type { Arguments, PortOf } from './read-demo-arguments.ts';
import { quoted, writeShell } from './write-shell.ts';

export type Demo = {
  /** Places the first orders: a pickup and a delivery, or those of the user's own platform. */
  placeFirst(): Promise<PlacedOrder[]>;
  /** @returns what the console and `order show` say is wrong with an order; undefined if nothing is */
  problemOf(serviceOrderId: string): Promise<string | undefined>;
  /** Resolves when an order that cannot be placed is held or withdrawn. */
  setAside(serviceOrderId: string): Promise<void>;
  /** Stops Postgres for a while: see `interruptPostgres`. @throws Error if Postgres is not the embedded one */
  outage(): Promise<() => Promise<Outage>>;
  /** Places and cancels three more orders: see `cancelOrders`. */
  cancelThree(signal: AbortSignal): Promise<Cancelled[]>;
  live: Live;
  pos: Simulator;
  kitchenUrl: string;
  /** A POST to this URL places another order. The hint names another value for its query. */
  ordersUrl: string;
  ordersHint: string;
  serviceUrl: string;
  operatorUrl: string;
  /** The page that follows an order. Undefined if the service has the user's own FOLLOW_TOKEN_KEYS. */
  trackerUrlOf: ((serviceOrderId: string) => Promise<string>) | undefined;
  /** See `Doors`. */
  howToConnect: string;
  consoleUrl: string;
  /** The token for the console. */
  operatorToken: string;
  logFile: string;
  /** The path of a file for a shell, which makes `expediter` the command line of this demo. */
  shell: string;
  /** The variables that this shell must have, because the file does not hold the user's secrets. */
  theirs: string[];
  /** More actions. Undefined with the user's own platform. */
  sample: Sample | undefined;
};

export type Sample = {
  /** Places orders at more locations until the end. The settings of location `behind` are wrong; `fix` has the commands. */
  keepBusy(): Promise<{ locations: readonly string[]; trackerUrl: string; behind: string; fix: string }>;
  /** Places an order whose answer is lost, so that only the restaurant knows whether it is there. @returns its location */
  loseAnswer(): string;
  /** Opens a location without a working kitchen. @returns the URLs for its orders and its statuses */
  openByHand(): Promise<{ ordersUrl: string; webhookUrl: string }>;
};

const LOCATION = 'demo-club';
const WITH_CANCELS = fileURLToPath(new URL('../../examples/order-with-cancels.ts', import.meta.url));
/** The factor by which a vendor's pauses are shorter: a minute becomes a tenth of a second. */
const HURRY = 600;

type DemoOptions = {
  dir: string;
  pos: Arguments['pos'];
  watch: boolean;
  own: Arguments['own'];
  portOf: PortOf;
  withoutGoogle: boolean;
  env: NodeJS.ProcessEnv;
  endings: Endings;
  timeline: Timeline;
  /** Ends the start when it is aborted. If a part fails later, it is aborted here. */
  stopping: AbortController;
  announce: (part: string, where: string) => void;
  print: (line: string) => void;
};

/** Starts all parts, each before those that need it, and registers their ends with `endings`. */
export async function startDemo(about: DemoOptions): Promise<Demo> {
  const { dir, env, endings, timeline, stopping, portOf } = about;
  const { signal } = stopping;
  const logFile = join(dir, 'service.log');
  const { PROVIDER_MODULES } = readConfigOf(env, 'PROVIDER_MODULES');
  const modules = about.own === undefined ? [...PROVIDER_MODULES, TILL] : PROVIDER_MODULES;
  const registry = await loadProviders(modules);
  const startSimulator = await loadSimulator(about.pos);
  const own = about.own && (await ownPlatform(about.own, env));
  // Deletes the database, because the service does not place an order again that it placed in an earlier run.
  if (own !== undefined) deleteDemoDatabase(dir);
  mkdirSync(dir, { recursive: true });
  writeFileSync(logFile, '');

  const { database, doors, platform, platformToken, pos, kitchen } = await startWorld(about, own, startSimulator);

  const addresses = await startBalancers(endings, portOf);
  const { balancer, operators } = addresses;
  const tracker = await serveTracker(balancer.url, portOf('guest page'));
  endings.add('the tracker', () => tracker.stop());
  tracker.restaurantOf = (serviceOrderId) => {
    const { locationId } = (platform?.orders.get(serviceOrderId) ?? {}) as Partial<CanonicalOrder>;
    return locationId && placeName(locationId);
  };

  const settingsKey = keepSecret(dir, 'settings-key', () => `demo:${randomBytes(32).toString('base64')}`);
  const operatorToken = keepSecret(dir, 'operators-token', () => randomBytes(32).toString('base64url'));
  const at = { databaseUrl: database.url, settingsKey, publicUrl: balancer.url };
  const openLocation = locationOpener({ ...at, registry, integration: pos.integration, settings: pos.settings });
  // Done before the service starts. It then loads the webhook tokens at once and knows them even without Postgres.
  for (const order of own?.orders ?? []) fillMenu(pos, order);
  await Promise.all((own?.orders ?? [{ locationId: LOCATION }]).map(({ locationId }) => openLocation(locationId)));
  signal.throwIfAborted();

  const gateway = platform && (await startGateway({ timeline, signal }));
  if (gateway !== undefined) endings.add('the gateway', () => gateway.stop());
  const followed = followOf(env, tracker);
  const run: RunService = {
    env: {
      ...doors.env,
      ...followed.env,
      ...gateway?.env,
      DATABASE_URL: database.url,
      ...(own?.env ?? {
        ORDER_API_URL: platform?.url ?? '',
        ORDER_API_TOKEN: platformToken,
        ORDER_MODULE: WITH_CANCELS,
      }),
      SETTINGS_KEY: settingsKey,
      ALLOW_PRIVATE_HOSTS,
      // The service runs in the project's folder, so paths relative to the demo's folder are resolved here.
      PROVIDER_MODULES: modules.map((name) => (/^[./]/.test(name) ? resolve(name) : name)).join(','),
      OPERATOR_TOKEN: operatorToken,
      PUBLIC_URL: balancer.url,
    },
    logFile,
    signal,
  };
  const { shell, theirs, consoleUrl } = await launch(run, about, addresses);

  const { show, tell, problemOf, outcomeOf, setAside } = readService(operators.url, operatorToken, about);
  const signalUrl = `${balancer.url}${doors.signalPath}`;
  const shared = { pos, ...doors, signalUrl, openLocation, show, tell, setAside, timeline, signal };
  const theirOrders = own && (await ownOrders({ own, ...shared, port: portOf('signals') }));
  if (theirOrders !== undefined) endings.add('the gate', () => theirOrders.gate.stop());
  const sampleUrl = await (platform && openLocation(LOCATION));
  const holds = new Map<string, Promise<void>>();
  const webhookUrlOf = (id: string): string | Promise<string> => theirOrders?.webhookUrlOf(id) ?? sampleUrl ?? '';
  const answers = cookOrders({ pos, webhookUrlOf, holds, timeline, signal });
  const live = await followLive({ doors, timeline, onError: (error) => stopping.abort(error) });
  endings.add('the subscriber', () => live.stop());
  const signalsTo = theirOrders === undefined ? signalUrl : `${theirOrders.gate.url}${doors.signalPath}`;
  await doors.sendSignalsTo(signalsTo, { ...about, operatorUrl: operators.url, operatorToken });

  const placeOwn = async (orderId: string): Promise<PlacedOrder> => {
    if (theirOrders === undefined) throw new Error('there is no platform of your own');
    return theirOrders.place(orderId);
  };
  /** Places an order, and prints later why it has no ticket. */
  const placeLater = async (orderId: string): Promise<PlacedOrder> => {
    const placed = await placeOwn(orderId);
    if (placed.fulfillment === null) void setAside(orderId).catch(() => {});
    return placed;
  };
  const ordering = platform && gateway && { platform, ...doors, timeline, gateway };
  const place = ordering && placeOrders({ ...ordering, locationId: LOCATION });
  const port = portOf('orders');
  const counter = await (place ? takeOrders(place, tracker, port) : takeOwnOrders(placeLater, tracker, port));
  endings.add('the order endpoint', () => counter.stop());
  signal.throwIfAborted();
  return {
    placeFirst: () =>
      Promise.all(place === undefined ? (about.own?.orders ?? []).map(placeOwn) : [place('pickup'), place('delivery')]),
    problemOf,
    setAside,
    async outage() {
      const postgres = database.embedded;
      if (postgres === undefined) throw new Error('only the embedded Postgres can be stopped');
      return interruptPostgres({ postgres, answers, outcomeOf, timeline, signal });
    },
    async cancelThree(within) {
      if (ordering === undefined || place === undefined) throw new Error('only the sample platform cancels orders');
      return cancelOrders({ ...ordering, place, live, pos, holds, signal: within });
    },
    live,
    pos,
    kitchenUrl: kitchen.url,
    ...howToOrder(counter.url, place === undefined),
    serviceUrl: balancer.url,
    operatorUrl: operators.url,
    trackerUrlOf: followed.isOwn ? undefined : tracker.urlOf,
    howToConnect: doors.howToConnect(),
    consoleUrl,
    operatorToken,
    logFile,
    shell,
    theirs,
    sample: ordering && place && sampleOf(about, { ordering, at, registry, place, live, setAside, tracker, shell }),
  };
}

type Own = Awaited<ReturnType<typeof ownPlatform>> | undefined;

/** Starts what the service works with: Postgres, its doors, the platform, the POS and its kitchen. */
async function startWorld(about: DemoOptions, own: Own, startSimulator: StartSimulator) {
  const { dir, env, endings, announce, portOf } = about;
  const { signal } = about.stopping;
  const database = await prepareDemoDatabase({ dir, databaseUrl: env['DATABASE_URL'] || undefined });
  endings.add('Postgres', () => database.stop());
  announce('Postgres', database.where);
  signal.throwIfAborted();

  const doors = await openDoors(about);
  endings.add('the doors', () => doors.stop());
  for (const [part, where] of doors.parts) announce(part, where);
  signal.throwIfAborted();

  const platformToken = randomBytes(32).toString('base64url');
  const platform = own === undefined ? await startOrderingPlatform({ token: platformToken }) : undefined;
  if (platform !== undefined) endings.add('the ordering platform', () => platform.stop());
  announce('Platform', own?.where ?? `${platform?.url} (GraphQL)`);

  // A sample POS has one currency: that of the first order.
  const currency = own?.orders[0]?.money.currency;
  const pos = await startSimulator({ hurry: HURRY, ...(currency !== undefined && { currency }) });
  endings.add('the POS', () => pos.stop());
  const kitchen = await showKitchen(pos, portOf('kitchen'));
  endings.add('the kitchen', () => kitchen.stop());
  announce('POS', `${pos.url} (${pos.integration}); its tickets, in a browser: ${kitchen.url}/`);
  return { database, doors, platform, platformToken, pos, kitchen };
}

async function openDoors({ env, withoutGoogle, portOf }: DemoOptions): Promise<Doors> {
  const port = portOf('Pub/Sub or statuses');
  if (withoutGoogle) return openHttp(env, port);
  return openPubsub({
    emulatorHost: env['PUBSUB_EMULATOR_HOST'] || undefined,
    project: env['GOOGLE_CLOUD_PROJECT'] || 'expediter-demo',
    run: randomBytes(5).toString('hex'),
    port,
  });
}

/**
 * Starts the addresses of the service, for POS systems and for operators. They must be known before it starts, because
 * some POS systems sign the URL that they call. They stay the same when it restarts.
 */
async function startBalancers(endings: Endings, portOf: PortOf) {
  const services: Pick<Service, 'url' | 'operatorUrl'>[] = [];
  const balancer = await balanceLoad(() => services.map(({ url }) => url), undefined, portOf('service'));
  endings.add('the load balancer', () => balancer.stop());
  const operators = await balanceLoad(
    () => services.map(({ operatorUrl }) => operatorUrl),
    undefined,
    portOf('console'),
  );
  endings.add("the operators' load balancer", () => operators.stop());
  return { services, balancer, operators };
}

/** Starts the service, and waits until it answers. @returns the file for a shell, and what the shell must have */
async function launch(
  run: RunService,
  { dir, env, watch, endings, stopping, announce, print }: DemoOptions,
  { services, balancer, operators }: Awaited<ReturnType<typeof startBalancers>>,
): Promise<Pick<Demo, 'shell' | 'theirs' | 'consoleUrl'>> {
  const proxies = { no_proxy: env['no_proxy'] ?? '', NO_PROXY: env['NO_PROXY'] ?? '' };
  const { shell, theirs } = writeShell(dir, { ...run.env, ...proxies, ...WHERE }, env);
  const running = watch ? await runAgainOnChange({ ...run, print }) : await runOnce(run, stopping);
  services.push(running);
  endings.add('the service', () => running.stop());
  for (const { url } of [balancer, operators])
    await until(async () => (await fetch(`${url}/readyz`, { signal: run.signal })).ok);
  announce('Service', `${balancer.url}/readyz (process ${running.pid}, log in ${run.logFile})`);
  const consoleUrl = `${operators.url}/console/`;
  announce('Console', `${consoleUrl} (operator token: ${run.env['OPERATOR_TOKEN']})`);
  return { shell, theirs, consoleUrl };
}

/** Says how to place another order. */
function howToOrder(url: string, isOwn: boolean): Pick<Demo, 'ordersUrl' | 'ordersHint'> {
  return {
    ordersUrl: `${url}/orders${isOwn ? '?id=ORDER_ID' : '?type=delivery'}`,
    ordersHint: isOwn
      ? `ORDER_ID: an order of your platform. A known one is signalled again: to try a
                cancel or a change, make it in your platform in the 3 s until the order is over, then run this.
                If you change the mapper, press Ctrl-C and run the demo again`
      : 'or type=pickup',
  };
}

/** Makes the function that sets a location up, once for the same settings. @returns the URL for its webhooks */
function locationOpener(
  about: Omit<Parameters<typeof setUpLocation>[0], 'locationId'>,
): (locationId: string) => Promise<string> {
  const webhookUrls = new Map<string, Promise<string>>();
  return (locationId) => {
    // `fillMenu` may have added items to the menu, and their ids to the settings, so changed settings are stored again.
    const key = JSON.stringify([locationId, about.settings]);
    const opened = webhookUrls.get(key) ?? setUpLocation({ ...about, locationId });
    webhookUrls.set(key, opened);
    return opened;
  };
}

/** The environment by which members follow their orders. @returns also whether the keys for it are the user's own */
function followOf(env: NodeJS.ProcessEnv, tracker: Tracker): { env: Record<string, string>; isOwn: boolean } {
  const origins = [tracker.url, env['MEMBER_ORIGINS']].filter(Boolean).join(',');
  const { FOLLOW_TOKEN_KEYS, FOLLOW_TOKEN_AUDIENCE = '' } = env;
  return {
    env: {
      ...tracker.env,
      ...(FOLLOW_TOKEN_KEYS && { FOLLOW_TOKEN_KEYS, FOLLOW_TOKEN_AUDIENCE }),
      MEMBER_ORIGINS: origins,
    },
    isOwn: Boolean(FOLLOW_TOKEN_KEYS),
  };
}

/** Reads from the service what became of orders and webhooks, and prints each problem once. */
function readService(operatorUrl: string, operatorToken: string, { timeline, stopping }: DemoOptions) {
  const { signal } = stopping;
  const show = async <Shown>(path: string): Promise<Shown | undefined> => {
    const headers = { authorization: `Bearer ${operatorToken}` };
    const answer = await fetch(`${operatorUrl}${path}`, { headers, signal });
    return answer.ok ? ((await answer.json()) as Shown) : undefined;
  };
  const problemOf = async (orderId: string): Promise<string | undefined> => {
    const shown = await show<ShownOrder>(`/v1/orders/${encodeURIComponent(orderId)}`);
    const problem = shown?.placement.problem ?? shown?.order?.reason;
    return problem ? `${shown?.placement.state.replace('_', ' ')}: ${problem}` : undefined;
  };
  const outcomeOf = async (id: string): Promise<string | undefined> =>
    (await show<ShownWebhook>(`/v1/webhooks/${id}?contents=false`))?.outcome;
  const told = new Map<string, string | undefined>();
  const tell = (orderId: string, problem: string | undefined): void => {
    if (told.get(orderId) === problem) return;
    told.set(orderId, problem);
    if (problem === undefined) return;
    timeline.print(orderId, 'service', problem, problem.startsWith('held') ? 'bad' : undefined);
  };
  const setAside = async (orderId: string): Promise<void> => {
    tell(orderId, await until(() => problemOf(orderId)));
  };
  return { show, tell, problemOf, outcomeOf, setAside };
}

type Ordering = {
  platform: OrderingPlatform;
  signalOrder: Doors['signalOrder'];
  timeline: Timeline;
  gateway: Awaited<ReturnType<typeof startGateway>>;
};

/** What one can try with the sample platform. */
function sampleOf(
  { dir, endings, stopping }: DemoOptions,
  about: {
    ordering: Ordering;
    at: { databaseUrl: string; settingsKey: string; publicUrl: string };
    registry: Awaited<ReturnType<typeof loadProviders>>;
    place: PlaceOrder;
    live: Live;
    setAside: Demo['setAside'];
    tracker: Tracker;
    shell: string;
  },
): Sample {
  const { ordering, at, registry, live, setAside, tracker, shell } = about;
  const { signalOrder } = ordering;
  const { signal } = stopping;
  return {
    loseAnswer() {
      const place = placeOrders({ ...ordering, locationId: IN_DOUBT });
      const lost = ordering.gateway.loseAnswer({ ...at, registry, place, live, setAside });
      lost.catch((error: Error) => stopping.abort(error));
      return placeName(IN_DOUBT);
    },
    async keepBusy() {
      const busy = await keepBusy({ dir, ...at, platform: ordering.platform, signal, signalOrder });
      endings.add('the other POS', () => busy.stop());
      const settings = quoted(busy.rightSettings);
      const fix = `. ${shell}\nexpediter location change --settings ${settings} ${BEHIND}`;
      tracker.newest = busy.newestOrder;
      const trackerUrl = `${tracker.url}/guest`;
      return { locations: BUSY.map(placeName), trackerUrl, behind: placeName(BEHIND), fix };
    },
    async openByHand() {
      const hand = await setUpByHand(at);
      endings.add('the POS by hand', () => hand.stop());
      const counter = await takeOrders(placeOrders({ ...ordering, locationId: BY_HAND }), tracker);
      endings.add('its order endpoint', () => counter.stop());
      return { ordersUrl: `${counter.url}/orders`, webhookUrl: hand.webhookUrl };
    },
  };
}

/** Runs the service. If it ends, so does the demo. */
async function runOnce(run: RunService, stopping: AbortController): Promise<Service> {
  const service = await runService(run);
  void service.ended.then((how) => stopping.abort(new Error(`the service ${how}; its log is in ${run.logFile}`)));
  return service;
}
