/**
 * Runs the whole system on one machine: `npm run demo`, and with `--watch` `npm run dev`. Its options are in
 * `read-demo-arguments.ts`.
 */
import { once } from 'node:events';
import { endings } from './endings.ts';
import { checkCancelled, type Cancelled } from './cancel-orders.ts';
import { journeyOf, checkJourney, type Journey } from './check-journey.ts';
import { checkOutage, OUTAGE_MS, type Outage } from './interrupt-postgres.ts';
import { USAGE, WrongUsage, readDemoArguments, type Arguments } from './read-demo-arguments.ts';
import type { Demo, Sample } from './start-demo.ts';
import type { PlacedOrder } from './place-orders.ts';
import { journeyLines } from './journey-lines.ts';

/** The user has stopped the demo. */
class Stopped extends Error {
  override readonly name = 'Stopped';
}

/** The result that `--json` prints. */
type Result = { orders: Journey[]; cancelled?: Cancelled[]; outage?: Outage };

/** What happened to an order that is not cooked. */
const ENDED_AS = {
  cancelled: 'is cancelled, because the platform has cancelled it: the POS never got it',
  held:
    'is held until it can be read. Data that you correct in the platform is read again within 30 s, and the order then ' +
    'goes to its POS. If you correct the mapper, press Ctrl-C and run the demo again',
  withdrawn: 'is withdrawn, because the mapper skips it: no ticket, and no message to its member',
};

/** Time limit for the first orders. They take three to four seconds. */
const JOURNEYS_WITHIN_MS = 20_000;
const NPM_POLL_MS = 200;
/** Time after the end until the process exits, even if a connection is still open. */
const LINGER_MS = 2_000;

process.exitCode = await main(process.argv.slice(2));
setTimeout(() => process.exit(), LINGER_MS).unref();

async function main(argv: string[]): Promise<number> {
  try {
    const options = readDemoArguments(argv, process.env);
    if (options.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    return await run(options);
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}`);
    return 2;
  }
}

async function run(options: Arguments): Promise<number> {
  const screen = options.json ? process.stderr : process.stdout;
  const print = (line: string): void => void screen.write(`${line}\n`);
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => stopping.abort(new Stopped(`stopped by ${name} before the orders were complete`)));
  }
  whenNpmEnds(() => stopping.abort(new Stopped('npm ended before the orders were complete')));
  // The reader of our output, such as `head`, has ended.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => stopping.abort(new Stopped('the output was closed')));
  }

  const ends = endings();
  const result: Result = { orders: [] };
  let failure: Error | undefined;
  try {
    await show(options, { print, stopping, ends, result, colourful: screen.isTTY && !process.env['NO_COLOR'] });
  } catch (error) {
    if (options.once || !(error instanceof Stopped)) failure = error as Error;
  }
  if (!options.once && failure === undefined) print('\nStopping …');
  stopping.abort(new Stopped('the demo ends'));
  await ends.run().catch((error: Error) => {
    failure ??= error;
  });

  if (failure !== undefined) process.stderr.write(`\nThe demo failed: ${failure.message}\n`);
  if (options.json) {
    const error = failure === undefined ? {} : { error: failure.message };
    process.stdout.write(`${JSON.stringify({ ok: failure === undefined, ...error, ...result })}\n`);
  }
  return failure === undefined ? 0 : 1;
}

async function show(
  options: Arguments,
  about: {
    print: (line: string) => void;
    stopping: AbortController;
    ends: ReturnType<typeof endings>;
    result: Result;
    colourful: boolean;
  },
): Promise<void> {
  const { print, stopping, result } = about;
  const { signal } = stopping;
  const { watch } = options;
  const lines = journeyLines(print, about.colourful);

  // Google's clients must not search for credentials: there are none, and the search takes seconds.
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  bypassProxies();
  // Loaded here, so that --help and a mistyped option do not wait for the client libraries.
  const { startDemo } = await import('./start-demo.ts').catch((error: Error & { code?: string }) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error(`${error.message}\nRun \`npm ci\` first.`, { cause: error });
  });
  print('Expediter: the whole system on this machine\n');
  const demo = await startDemo({
    dir: options.dir,
    pos: options.pos,
    watch,
    own: options.own,
    portOf: options.portOf,
    withoutGoogle: options.withoutGoogle,
    env: process.env,
    endings: about.ends,
    timeline: lines,
    stopping,
    announce: (part, where) => print(`  ${part.padEnd('Postgres'.length)}  ${where}`),
    print: (line) => print(`${new Date().toLocaleTimeString('en-GB')}  ${line}`),
  });
  if (watch && demo.sample !== undefined) return await stayOpen(demo, demo.sample, { ...options, print, signal });

  const which = options.own === undefined ? 'One order for pickup, one for delivery' : 'Orders of your platform';
  print(`\n${which}. Times count from the moment when the platform signals the order\n`);
  lines.head();
  const wrong: string[] = [];
  // A platform that is slow, or fails, ends no demo to which it is being connected.
  const staysOpen = options.own !== undefined && !options.once;
  const travelled = travel(demo, options.outage, signal).catch((error: Error) => {
    if (!staysOpen || signal.aborted) throw error;
    wrong.push(error.message);
  });
  Object.assign(result, await travelled);
  for (const journey of result.orders) {
    const broken = checkJourney(journey);
    if (broken === undefined) continue;
    const problem = await demo.problemOf(journey.serviceOrderId);
    wrong.push(problem === undefined ? broken : `${broken} (${problem})`);
  }
  const broken = result.outage && checkOutage(result.outage, !options.withoutGoogle);
  if (broken !== undefined) wrong.push(broken);
  if (options.cancel && wrong.length === 0) {
    print('\nMembers cancel three orders: one before it is sent, one after, and one when it is too late\n');
    lines.head();
    const late = AbortSignal.timeout(JOURNEYS_WITHIN_MS);
    result.cancelled = await demo.cancelThree(AbortSignal.any([signal, late])).catch((error: unknown) => {
      throw error === late.reason ? new Error(`the cancelled orders did not end. See ${demo.logFile}`) : error;
    });
    const broken = checkCancelled(result.cancelled);
    if (broken !== undefined) wrong.push(broken);
  }
  if (wrong.length > 0) {
    const silent = result.orders.every((journey) => journey.memberStates.length === 0);
    const hint =
      silent && process.env['PUBSUB_EMULATOR_HOST'] && !options.withoutGoogle
        ? ` Can the emulator reach ${demo.serviceUrl}? An emulator in a container cannot.`
        : '';
    const problem = `${wrong.join('; ')}.${hint} The service's log is in ${demo.logFile}`;
    if (!staysOpen) throw new Error(problem);
    print(`\nNot complete: ${problem}`);
  } else printResult(print, result);
  if (options.once) return;

  await printLinks(print, demo, result, options.dir);
  if (demo.sample !== undefined) {
    print(`The POS of ${demo.sample.loseAnswer()} has an order, but its answer is lost, on purpose. Nobody can ask
this POS, so the service asks the restaurant by SMS and does not send the order again.\n`);
    lines.head();
  }
  if (!signal.aborted) await once(signal, 'abort');
  signal.throwIfAborted();
}

/** Prints what became of the orders, if all went as it should. */
function printResult(print: (line: string) => void, result: Result): void {
  const [one, ...more] = result.orders.filter(({ expected }) => expected === undefined);
  const count = more.length + 1;
  const all =
    count === result.orders.length ? (count === 2 ? 'Both orders' : `All ${count} orders`) : `${count} orders`;
  const complete =
    more.length === 0
      ? `The order ${one?.serviceOrderId} is complete: one ticket`
      : `${all} are complete: one ticket each`;
  if (one !== undefined) print(`\n${complete}, and the member was notified of every step once, in order.`);
  for (const { serviceOrderId, expected } of result.orders) {
    if (expected !== undefined && expected !== 'waiting') print(`Order ${serviceOrderId} ${ENDED_AS[expected]}.`);
  }
  if (result.outage !== undefined) {
    const { accepted, repeated, seconds } = result.outage;
    const meanwhile =
      accepted > 0 ? `${accepted} webhooks were accepted` : `${repeated} webhooks got 500, and the POS repeated them`;
    print(`Postgres was down for ${seconds} s. Meanwhile ${meanwhile}. None was lost.`);
  }
  if (result.cancelled !== undefined) {
    print('The first order was never sent. The POS cancelled the second, and refused to cancel the third.');
  }
}

/** Prints where to look, and what to try. Keeps more locations busy, if it is the sample platform. */
async function printLinks(print: (line: string) => void, demo: Demo, result: Result, dir: string): Promise<void> {
  const busy = await demo.sample?.keepBusy();
  const link = (what: string, serviceOrderId: string): string =>
    `${`The ${what}:`.padEnd(16)}${demo.consoleUrl}orders/${encodeURIComponent(serviceOrderId)}`;
  const links = [
    ...result.orders.map(({ serviceOrderId, fulfillment, expected }) =>
      link(expected ?? fulfillment ?? 'order', serviceOrderId),
    ),
    ...(result.cancelled ?? []).map(({ serviceOrderId, memberStates }) =>
      link(memberStates.at(-1) === 'cancelled' ? 'cancelled' : 'refused', serviceOrderId),
    ),
  ];
  const first = result.orders.find(({ fulfillment }) => fulfillment !== null);
  const tracked =
    first && demo.trackerUrlOf ? `A guest sees:   ${await demo.trackerUrlOf(first.serviceOrderId)}\n` : '';
  print(`
The console:    ${demo.consoleUrl}
Log in with:    ${demo.operatorToken}
${links.join('\n')}
${busy === undefined ? tracked : guests(busy)}Place another:  curl -X POST '${demo.ordersUrl}'   (${demo.ordersHint})
Command line:   . ${demo.shell}   (${inShell(demo)})
The kitchen:    ${demo.kitchenUrl}/
The service:    ${demo.serviceUrl}/readyz
${demo.howToConnect}
Ctrl-C ends everything. The data stays in ${dir}
`);
}

/** Says how to use the file for a shell. */
function inShell({ theirs }: Demo): string {
  const first = theirs.length === 0 ? '' : `export ${theirs.join(' and ')} as for the demo, `;
  return `${first}run this once in a shell, then paste commands from the console there`;
}

/** Describes the guests who order from now on, the first guest's tracker, and the fault that was made on purpose. */
function guests({ trackerUrl, locations, behind, fix }: Awaited<ReturnType<Sample['keepBusy']>>): string {
  return `A guest sees:   ${trackerUrl}

From now on a few guests a minute order at ${locations.join(', ')} and ${behind}. The kitchen of
${locations[0]} is busy, and that of ${locations[1]} is closed for two minutes: its orders wait. The POS of
${behind} signs its webhooks with an old secret, on purpose: they are dropped. Wait until the board
shows that, which takes up to 20 s. The commands below add this secret as \`previousSecret\`, which is accepted
next to the new one. Run them in another terminal, then replay the dropped webhooks:
${fix}
`;
}

/** Shows a developer where everything is, and waits for the end. */
async function stayOpen(
  demo: Demo,
  sample: Sample,
  { dir, print, signal }: { dir: string; print: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  const byHand = await sample.openByHand();
  const status = '{"eventType":"order.status","order":{"thirdPartyReference":"<serviceOrderId>","status":"READY"}}';
  print(`
The console:    ${demo.consoleUrl}
Log in with:    ${demo.operatorToken}
Operator API:   ${demo.operatorUrl}   (the same token as Bearer; /openapi.json describes it)
The log:        tail -f ${demo.logFile}
Command line:   . ${demo.shell}   (${inShell(demo)})

Place an order: curl -X POST '${demo.ordersUrl}'   (${demo.ordersHint}; the kitchen cooks it)
Drive one:      curl -X POST '${byHand.ordersUrl}?type=delivery'   (then send its statuses yourself:)
                curl '${byHand.webhookUrl}' -d '${status}'
Watch one:      open the trackerUrl in the answer to either order

A change in src restarts the service. A change in console rebuilds the console.
Ctrl-C ends everything. The data stays in ${dir}
`);
  if (!signal.aborted) await once(signal, 'abort');
  signal.throwIfAborted();
}

function isRead({ fulfillment }: PlacedOrder): boolean {
  return fulfillment !== null;
}

/** Places the first orders and waits for their ends, within a time limit. `withOutage` stops Postgres meanwhile. */
async function travel(demo: Demo, withOutage: boolean, signal: AbortSignal): Promise<Result> {
  const orders = await demo.placeFirst();
  const late = AbortSignal.timeout(JOURNEYS_WITHIN_MS + (withOutage ? OUTAGE_MS : 0));
  const all = async (come: 'sent' | 'ended'): Promise<void> => {
    const coming = orders
      .filter(isRead)
      .map((order) => demo.live[come](order.serviceOrderId, AbortSignal.any([signal, late])));
    await Promise.all(coming).catch((error: unknown) => {
      // At the time limit, nothing is thrown here, because `checkJourney` reports the incomplete orders.
      if (error !== late.reason) throw error;
    });
  };
  const aside = Promise.all(
    orders
      .filter((order) => !isRead(order) && order.expected !== 'waiting')
      .map((order) => demo.setAside(order.serviceOrderId)),
  );
  if (withOutage) await all('sent');
  const tellOutage = withOutage ? await demo.outage() : undefined;
  await all('ended');
  await aside;
  const journeys = orders.map((order) =>
    journeyOf(order, demo.live.messagesOf(order.serviceOrderId), demo.pos.tickets),
  );
  return { orders: journeys, ...(tellOutage && { outage: await tellOutage() }) };
}

/** Ends the demo when npm ends. npm sends SIGTERM only to the shell that runs us, which ends without passing it on. */
function whenNpmEnds(end: () => void): void {
  if (!['demo', 'dev'].includes(process.env['npm_lifecycle_event'] ?? '')) return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && end(), NPM_POLL_MS).unref();
}

/** Bypasses the network's proxies, which cannot reach this machine. */
function bypassProxies(): void {
  for (const name of ['no_proxy', 'NO_PROXY']) {
    process.env[name] = [process.env[name], '127.0.0.1', 'localhost'].filter(Boolean).join(',');
  }
}
