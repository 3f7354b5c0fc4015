import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { POS_NAMES } from '../../world/pos/index.ts';

export type Arguments = {
  help: boolean;
  once: boolean;
  watch: boolean;
  json: boolean;
  outage: boolean;
  cancel: boolean;
  /** Signals by HTTP and statuses by webhook, in place of Pub/Sub. */
  withoutGoogle: boolean;
  /** The name of one of our simulators, or the path of a simulator's module. */
  pos: string;
  dir: string;
  /** The port of a part: 0 for any free port. */
  portOf: PortOf;
  /** The user's own platform: its module, and the ids of some orders. */
  own: { module: string; orders: readonly string[] } | undefined;
};

/** Wrong arguments. The demo then prints its usage and exits with code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

/** What `--ports` numbers, in this order. */
export const PORTS = [
  'service',
  'console',
  'signals',
  'Pub/Sub or statuses',
  'kitchen',
  'guest page',
  'orders',
] as const;
export type PortOf = (part: (typeof PORTS)[number]) => number;

const DEFAULT_DIR = fileURLToPath(new URL('../../.demo', import.meta.url));

export const USAGE = `Usage: npm run demo [-- <options>]

Starts the whole system on this machine, places a pickup order and a delivery order, and prints
each step to the POS and back. Runs until Ctrl-C.

Options:
  --once       end when both orders are complete, with exit code 0 if all went well, otherwise 1
  --watch      place no order, and restart the service when a file in src changes (npm run dev)
  --json       with --once: print the result as JSON in the last line of standard output, all else on standard error
  --outage     stop the embedded Postgres for ten seconds when the orders are sent. The service still accepts the
               kitchen's webhooks, and notifies the member of each status afterwards, in order
  --cancel     place three more orders, which members cancel: one before it is sent, one after, one when it is too late
  --without-google
               Postgres alone, in place of Pub/Sub: signals by POST /signal, statuses by webhook. There is no spill, so
               with --outage the webhooks get 500, and the kitchen's POS repeats them
  --pos <name> the POS, one of ${POS_NAMES.join(', ')} (default: standard).
               Or a path that begins with . or /: a module that exports one function, which starts a simulator of your
               own POS. PROVIDER_MODULES must name its provider. See docs/writing-a-provider.md
  --dir <dir>  store the data there for the next run (default: .demo in this repository)
  --ports <first>
               use the same ports in each run, from this one on: ${PORTS.join(', ')}
  --platform <module>
               use your own platform instead of the sample platform: a module as in ORDER_MODULE, or a path that begins
               with . or /. Every run begins with an empty database. See docs/connect-your-platform.md
  --order <id> with --platform: an order that your platform has. Repeat the option for more orders. All are fetched
               first. An order that is cancelled, skipped or cannot be read is shown with its end. Each location gets a sample POS with the order's items on its menu, and the order is sent there.
               Nothing is written to your platform
  -h, --help   print this

Environment:
  ORDER_API_URL         with --platform: your platform's GraphQL endpoint
  ORDER_API_TOKEN       with --platform: the token that your platform requires, if any
  FOLLOW_TOKEN_KEYS, FOLLOW_TOKEN_AUDIENCE
                        your keys of follow tokens, instead of those of the demo's guest page
  MEMBER_ORIGINS        origins of your pages that may read /follow
  PROVIDER_MODULES      your own providers, as for the service
  DATABASE_URL          a Postgres to use instead of the embedded one; it is migrated first
  STATUS_WEBHOOK_URL, STATUS_WEBHOOK_SECRET
                        with --without-google: your own receiver of the statuses, and the secret that signs them
  PUBSUB_EMULATOR_HOST  a Pub/Sub emulator to use instead of the stand-in
`;

/** @throws WrongUsage */
export function readDemoArguments(argv: string[], env: NodeJS.ProcessEnv): Arguments {
  const { help = false, once = false, watch = false, json = false, pos: name = 'standard', ...given } = parse(argv);
  const {
    outage = false,
    cancel = false,
    'without-google': withoutGoogle = false,
    dir = DEFAULT_DIR,
    ports,
    platform: module,
    order: orders = [],
  } = given;
  const isPath = /^[./]/.test(name);
  if (!isPath && !POS_NAMES.some((each) => each === name)) {
    throw new WrongUsage(`--pos must be a path or one of ${POS_NAMES.join(', ')}`);
  }
  if (json && !once && !help) throw new WrongUsage('--json needs --once');
  if (watch && once) throw new WrongUsage('--watch runs until Ctrl-C and cannot be used with --once');
  if (watch && outage) throw new WrongUsage('--watch places no order and cannot be used with --outage');
  if (cancel && (watch || module !== undefined || name !== 'standard')) {
    throw new WrongUsage('--cancel requires the sample platform and the POS standard, without --watch');
  }
  if (outage && env['DATABASE_URL']) throw new WrongUsage('--outage stops the embedded Postgres: unset DATABASE_URL');
  if (withoutGoogle && env['STATUS_WEBHOOK_URL'] && !env['STATUS_WEBHOOK_SECRET']) {
    throw new WrongUsage('STATUS_WEBHOOK_URL needs STATUS_WEBHOOK_SECRET, by which your receiver checks the statuses');
  }
  if (module === undefined && orders.length > 0) throw new WrongUsage('--order needs --platform');
  if (module !== undefined && orders.length === 0) throw new WrongUsage('--platform needs at least one --order');
  if (module !== undefined && watch) throw new WrongUsage('--watch places no order and cannot be used with --platform');
  const firstPort = ports === undefined ? undefined : Number(ports);
  if (
    firstPort !== undefined &&
    !(firstPort >= 1_024 && firstPort + PORTS.length <= 65_536 && /^\d+$/.test(ports ?? ''))
  )
    throw new WrongUsage('--ports needs a port, such as 4100');
  if (dir === '') throw new WrongUsage('--dir needs a directory');
  const own = module === undefined ? undefined : { module: /^[./]/.test(module) ? resolve(module) : module, orders };
  return {
    help,
    once,
    watch,
    json,
    outage,
    cancel,
    withoutGoogle,
    pos: isPath ? resolve(name) : name,
    portOf: (part) => (firstPort === undefined ? 0 : firstPort + PORTS.indexOf(part)),
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
        'without-google': { type: 'boolean' },
        pos: { type: 'string' },
        dir: { type: 'string' },
        ports: { type: 'string' },
        platform: { type: 'string' },
        order: { type: 'string', multiple: true },
      },
    }).values;
  } catch (error) {
    throw new WrongUsage((error as Error).message, { cause: error });
  }
}
