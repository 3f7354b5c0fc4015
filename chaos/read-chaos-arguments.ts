import { parseArgs } from 'node:util';
import { KINDS, isAwayAlone, secondsToBeAway, type Kind } from './plan-faults.ts';

export type Arguments = {
  help: boolean;
  json: boolean;
  seconds: number;
  seed: number;
  ordersPerSecond: number;
  recoveryS: number;
  kills: number;
  awayS: number;
  only: ReadonlySet<Kind>;
  /** A run of its own kind, in which no other fault takes part. */
  alone: Alone | undefined;
};

const ALONE = ['silent', 'phones', 'orderings'] as const;
type Alone = (typeof ALONE)[number];

/** Wrong arguments. The answer is the usage and exit code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

export const USAGE = `Usage: npm run chaos [-- <options>]

Runs two processes of the service on real parts, lets orders and webhooks go through them while processes die,
Postgres restarts, networks break and senders misbehave, and then checks the books: is anything lost, doubled, out of
order, or at the wrong location? Exit code 0 when all is well, otherwise 1.

Options:
  --seconds <n>         how long faults go on (default 60, or what --away needs); a minute or two more pass until all has
                        settled.
                        Under 60, no POS takes part that has to be asked before a repeat: that alone takes a minute
  --seed <n>            the same seed gives the same orders and the same faults (default: by the clock)
  --only <kinds>        these faults alone, with commas between them
  --orders <n>          orders a second (default 8, with --only away 4)
  --kills <n>           how often a process is killed for each time one is replaced and frozen (default 6)
  --away <seconds>      how long Postgres is away (default 10); beside other faults at most an eighth of the run.
                        With --only away four processes run, of which up to three are killed meanwhile, senders
                        repeat nothing, and fewer than 99.9 % answered 200 within 1.5 s are a complaint
  --recovery <seconds>  within which the service has to be back after a fault of Postgres (default 5).
                        On a slower machine all times may be as much longer, and beyond twice they are not judged
  --json                the last line of standard output is the result as JSON; the rest goes to standard error
  -h, --help            print this

Faults: ${KINDS.join(', ')}
Alone, and only if they are named, runs of which --seed alone can be chosen:
  silent  all vendors that can be asked lose their webhooks, for two minutes and then for good; some fourteen minutes
  phones  each order is followed by a phone, and their streams are cut 10,000 times: by the network, with processes that
          are killed or replaced, and while Postgres is away; some five minutes
  orderings
          events, and then cancels, changes and lost answers with them, in any order at all kinds of POS, without any
          process that dies; a minute
`;

/** @throws WrongUsage */
export function readChaosArguments(argv: string[]): Arguments {
  const given = parse(argv);
  const kinds = given.only?.split(',').map((kind) => kind.trim());
  const alone = kinds?.length === 1 ? ALONE.find((each) => each === kinds[0]) : undefined;
  const unknown = alone === undefined ? kinds?.find((kind) => !KINDS.includes(kind as Kind)) : undefined;
  if (ALONE.some((each) => each === unknown)) throw new WrongUsage(`--only: no other fault goes with "${unknown}"`);
  if (unknown !== undefined) throw new WrongUsage(`--only: there is no fault "${unknown}"`);
  const only = new Set((kinds as Kind[] | undefined) ?? KINDS);
  const awayS = number('--away', given.away ?? '10', 1, 3_600);
  const needed = isAwayAlone(only) ? secondsToBeAway(awayS) : 0;
  const seconds = number('--seconds', given.seconds ?? String(Math.max(60, needed)), 5, 86_400);
  if (seconds < needed) throw new WrongUsage(`--away ${awayS} needs --seconds ${needed} at least, not "${seconds}"`);
  return {
    help: given.help ?? false,
    json: given.json ?? false,
    seconds,
    seed: number('--seed', given.seed ?? String(Date.now() % 1_000_000), 0, Number.MAX_SAFE_INTEGER),
    // After an outage, all orders of it come at once.
    ordersPerSecond: number('--orders', given.orders ?? (isAwayAlone(only) ? '4' : '8'), 1, 100),
    recoveryS: number('--recovery', given.recovery ?? '5', 1, 600),
    kills: number('--kills', given.kills ?? '6', 1, 100),
    awayS,
    only,
    alone,
  };
}

function number(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new WrongUsage(`${name} takes a whole number from ${least} to ${most}, not "${text}"`);
}

function parse(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      options: {
        help: { type: 'boolean', short: 'h' },
        json: { type: 'boolean' },
        seconds: { type: 'string' },
        seed: { type: 'string' },
        only: { type: 'string' },
        orders: { type: 'string' },
        recovery: { type: 'string' },
        kills: { type: 'string' },
        away: { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw new WrongUsage((error as Error).message, { cause: error });
  }
}
