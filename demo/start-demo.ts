import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startOrderingPlatform } from '../test/support/start-ordering-platform.ts';
import { until } from '../test/support/until.ts';
import type { Simulator } from '../test/simulators/simulator.ts';
import { balanceLoad } from '../test/support/balance-load.ts';
import { cookOrders } from './cook-orders.ts';
import type { Endings } from './endings.ts';
import { followLive, type Live } from './follow-live.ts';
import { BUSY, BEHIND, keepBusy } from './keep-busy.ts';
import { keepSecret } from './keep-secret.ts';
import { openPubsub } from './open-pubsub.ts';
import { placeOrders, type PlaceOrder } from './place-orders.ts';
import { prepareDemoDatabase } from './prepare-demo-database.ts';
import { SIMULATORS, type PosName } from '../test/simulators/index.ts';
import { runAnewOnChange } from './run-anew-on-change.ts';
import { runService, type RunService, type Service } from './run-service.ts';
import { BY_HAND, setUpByHand } from './set-up-by-hand.ts';
import { setUpLocation } from './set-up-location.ts';
import { showKitchen } from './show-kitchen.ts';
import { takeOrders } from './take-orders.ts';
import type { Timeline } from './journey-lines.ts';

export type Demo = {
  place: PlaceOrder;
  live: Live;
  pos: Simulator;
  kitchenUrl: string;
  ordersUrl: string;
  serviceUrl: string;
  consoleUrl: string;
  /** The token for the console. */
  operatorToken: string;
  logFile: string;
  /** The beginning of every `expediter` command here. */
  cli: string;
  /** Places orders at other locations until the end. @returns their names, and a command that corrects BEHIND */
  keepBusy(): Promise<{ locations: readonly string[]; behind: string; mend: string }>;
  /** Opens a location without a working kitchen. @returns the URLs for its orders and its statuses */
  openByHand(): Promise<{ ordersUrl: string; webhookUrl: string }>;
};

const LOCATION = 'demo-club';
/** The factor by which a vendor's pauses are shorter: a minute becomes a tenth of a second. */
const HURRY = 600;

/**
 * Starts all parts, each before those that need it, and registers their ends with `endings`.
 * @param about.stopping aborted to give up; aborted here if a part fails later
 */
export async function startDemo(about: {
  dir: string;
  pos: PosName;
  watch: boolean;
  env: NodeJS.ProcessEnv;
  endings: Endings;
  timeline: Timeline;
  stopping: AbortController;
  announce: (part: string, where: string) => void;
  print: (line: string) => void;
}): Promise<Demo> {
  const { dir, env, endings, timeline, stopping, announce } = about;
  const { signal } = stopping;
  const logFile = join(dir, 'service.log');
  mkdirSync(dir, { recursive: true });
  writeFileSync(logFile, '');

  const database = await prepareDemoDatabase({ dir, databaseUrl: env['DATABASE_URL'] || undefined });
  endings.add('Postgres', () => database.stop());
  announce('Postgres', database.where);
  signal.throwIfAborted();

  const pubsub = await openPubsub({
    emulatorHost: env['PUBSUB_EMULATOR_HOST'] || undefined,
    project: env['GOOGLE_CLOUD_PROJECT'] || 'expediter-demo',
    run: randomBytes(5).toString('hex'),
  });
  endings.add('Pub/Sub', () => pubsub.stop());
  announce('Pub/Sub', pubsub.where);
  signal.throwIfAborted();

  const platformToken = randomBytes(24).toString('base64url');
  const platform = await startOrderingPlatform({ token: platformToken });
  endings.add('the ordering platform', () => platform.stop());
  announce('Platform', `${platform.url} (GraphQL)`);

  const pos = await SIMULATORS[about.pos]({ hurry: HURRY });
  endings.add('the POS', () => pos.stop());
  const kitchen = await showKitchen(pos);
  endings.add('the kitchen', () => kitchen.stop());
  announce('POS', `${pos.url} (${pos.integration}); its tickets, in a browser: ${kitchen.url}/`);

  // Known before the service starts, since some POS systems sign the URL that they call.
  let service: Pick<Service, 'url' | 'pid' | 'stop'> | undefined;
  const balancer = await balanceLoad(() => (service === undefined ? [] : [service.url]));
  endings.add('the load balancer', () => balancer.stop());

  const settingsKey = keepSecret(dir, 'settings-key', () => `demo:${randomBytes(32).toString('base64')}`);
  const operatorToken = keepSecret(dir, 'operator-token', () => randomBytes(24).toString('base64url'));
  const webhookUrl = await setUpLocation({
    databaseUrl: database.url,
    settingsKey,
    publicUrl: balancer.url,
    locationId: LOCATION,
    integration: pos.integration,
    settings: pos.settings,
  });
  signal.throwIfAborted();

  const run: RunService = {
    env: {
      ...pubsub.env,
      DATABASE_URL: database.url,
      ORDER_API_URL: platform.url,
      ORDER_API_TOKEN: platformToken,
      SETTINGS_KEY: settingsKey,
      OPERATOR_TOKEN: operatorToken,
      PUBLIC_URL: balancer.url,
    },
    logFile,
    signal,
  };
  const running = about.watch ? await runAnewOnChange({ ...run, print: about.print }) : await runOnce(run, stopping);
  service = running;
  endings.add('the service', () => running.stop());
  await until(async () => (await fetch(`${balancer.url}/readyz`, { signal })).ok);
  announce('Service', `${balancer.url}/readyz (process ${running.pid}, log in ${logFile})`);
  const consoleUrl = `${balancer.url}/console/`;
  announce('Console', `${consoleUrl} (operator token: ${operatorToken})`);

  cookOrders({ pos, webhookUrl, timeline, signal });
  const subscription = await pubsub.subscribeToStatus();
  const live = followLive({ subscription, timeline, onError: (error) => stopping.abort(error) });
  endings.add('the subscriber', () => live.stop());
  await pubsub.pushOrdersTo(`${balancer.url}/pubsub/push`);

  const ordering = { platform, topic: pubsub.orders, timeline };
  const place = placeOrders({ ...ordering, locationId: LOCATION });
  const counter = await takeOrders(place);
  endings.add('the order endpoint', () => counter.stop());
  signal.throwIfAborted();
  const databaseUrl = env['DATABASE_URL'] ? '"$DATABASE_URL"' : database.url;
  const cli = `DATABASE_URL=${databaseUrl} SETTINGS_KEY="$(cat ${join(dir, 'settings-key')})" npm run expediter --`;
  return {
    place,
    live,
    pos,
    kitchenUrl: kitchen.url,
    ordersUrl: `${counter.url}/orders`,
    serviceUrl: balancer.url,
    consoleUrl,
    operatorToken,
    logFile,
    cli,
    async keepBusy() {
      const about = { dir, databaseUrl: database.url, settingsKey, publicUrl: balancer.url, platform, signal };
      const busy = await keepBusy({ ...about, topic: pubsub.orders });
      endings.add('the other POS', () => busy.stop());
      const mend = `${cli} location put --location ${BEHIND} --integration standard --settings ${busy.rightSettings}`;
      return { locations: BUSY, behind: BEHIND, mend };
    },
    async openByHand() {
      const hand = await setUpByHand({ databaseUrl: database.url, settingsKey, publicUrl: balancer.url });
      endings.add('the POS by hand', () => hand.stop());
      const counter = await takeOrders(placeOrders({ ...ordering, locationId: BY_HAND }));
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
