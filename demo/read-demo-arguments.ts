import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { POS_NAMES } from '../test/simulators/index.ts';

export type Arguments = {
  help: boolean;
  once: boolean;
  watch: boolean;
  json: boolean;
  outage: boolean;
  cancel: boolean;
  /** The name of a POS of ours, or the path of a simulator's module. */
  pos: string;
  dir: string;
  /** A platform of the reader's own: its module, and orders of it. */
  own: { module: string; orders: readonly string[] } | undefined;
};

/** Wrong arguments. The answer is the usage and exit code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

const DEFAULT_DIR = fileURLToPath(new URL('../.demo', import.meta.url));

export const USAGE = `Usage: npm run demo [-- <options>]

Starts the whole system on this machine, places a pickup and a delivery order, shows their way
to the POS and back, and stays up until Ctrl-C.

Options:
  --once       end as soon as both orders are complete; exit code 0 when all went well, otherwise 1
  --watch      place no order, and start the service anew when a file of src changes: see npm run dev
  --json       with --once: the last line of standard output is the result as JSON; the rest goes to standard error
  --outage     stop the embedded Postgres for ten seconds once the orders are sent, and show that the kitchen's webhooks
               are taken all the same, and that the member hears of each of them afterwards, in order
  --cancel     three more orders, which their members cancel: before it is sent, after, and when it is too late
  --pos <name> the POS, one of ${POS_NAMES.join(', ')} (default: standard);
               or a path that begins with . or /: a module that exports the function which starts the simulator of a
               POS of your own, whose provider PROVIDER_MODULES names. See docs/writing-a-provider.md
  --dir <dir>  keep the data there, from one run to the next (default: .demo in this repository)
  --platform <module>
               in place of the sample platform your own: a module as ORDER_MODULE names one, a path that begins with
               . or /; every run begins with fresh data. See docs/connect-your-platform.md
  --order <id> with --platform: an order that your platform has; repeat it for more. All are fetched before anything
               starts. Each location gets a sample POS that has the order's items on its menu, and the order goes
               there and back. Nothing is written to your platform
  -h, --help   print this

Environment:
  ORDER_API_URL         with --platform: your platform's GraphQL endpoint
  ORDER_API_TOKEN       with --platform: the token that it wants, if any
  PROVIDER_MODULES      providers of your own, as the service takes them
  DATABASE_URL          a Postgres to use in place of the embedded one; it is migrated first
  PUBSUB_EMULATOR_HOST  a Pub/Sub emulator to use in place of the stand-in
`;

/** @throws WrongUsage */
export function readDemoArguments(argv: string[], env: NodeJS.ProcessEnv): Arguments {
  const { help = false, once = false, watch = false, json = false, pos: name = 'standard', ...given } = parse(argv);
  const { outage = false, cancel = false, dir = DEFAULT_DIR, platform: module, order: orders = [] } = given;
  const isPath = /^[./]/.test(name);
  if (!isPath && !POS_NAMES.some((each) => each === name)) {
    throw new WrongUsage(`--pos is no path and none of ${POS_NAMES.join(', ')}`);
  }
  if (json && !once && !help) throw new WrongUsage('--json needs --once');
  if (watch && once) throw new WrongUsage('--watch never ends by itself, so there is no --once');
  if (watch && outage) throw new WrongUsage('--watch places no order, so there is no --outage');
  if (cancel && (watch || module !== undefined || name !== 'standard')) {
    throw new WrongUsage('--cancel is for the sample platform and the POS standard, without --watch');
  }
  if (outage && env['DATABASE_URL']) throw new WrongUsage('--outage stops the embedded Postgres: unset DATABASE_URL');
  if (module === undefined && orders.length > 0) throw new WrongUsage('--order needs --platform');
  if (module !== undefined && orders.length === 0) throw new WrongUsage('--platform needs an --order or more of them');
  if (module !== undefined && watch) throw new WrongUsage('--watch places no order, so there is no --platform');
  if (dir === '') throw new WrongUsage('--dir needs a directory');
  const own = module === undefined ? undefined : { module: /^[./]/.test(module) ? resolve(module) : module, orders };
  return {
    help,
    once,
    watch,
    json,
    outage,
    cancel,
    pos: isPath ? resolve(name) : name,
    dir: resolve(dir, ...(own === undefined ? [] : ['own-platform'])),
    own,
  };
}

function parse(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      options: {
        help: { type: 'boolean', short: 'h' },
        once: { type: 'boolean' },
        watch: { type: 'boolean' },
        json: { type: 'boolean' },
        outage: { type: 'boolean' },
        cancel: { type: 'boolean' },
        pos: { type: 'string' },
        dir: { type: 'string' },
        platform: { type: 'string' },
        order: { type: 'string', multiple: true },
      },
    }).values;
  } catch (error) {
    throw new WrongUsage((error as Error).message, { cause: error });
  }
}
