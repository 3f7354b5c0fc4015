import { parseArgs } from 'node:util';
import { DOORS, type Doors } from '../../world/system/fixtures.ts';
import { KINDS, fits, isAwayAlone, secondsToBeAway, type Kind } from './plan-faults.ts';

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
  doors: Doors;
  /** How many processes are replaced by one of the other version, with --only versions. */
  rolls: number;
  /** A special run, which has no other faults. */
  alone: Alone | undefined;
};

const ALONE = ['silent', 'phones', 'kitchen', 'contacts', 'archive', 'versions'] as const;
type Alone = (typeof ALONE)[number];

/** Wrong arguments. The program then prints its usage and exits with code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}

export const USAGE = `Usage: npm run chaos [-- <options>]

Runs two processes of the service with a real Postgres and a stand-in for Pub/Sub. Sends orders and webhooks while
processes die, Postgres restarts, networks break and senders misbehave. Then checks whether anything is lost, doubled,
out of order, or at the wrong location. Exit code 0 if all is well, otherwise 1.

Options:
  --seconds <n>         how long faults are injected (default 60, or what --away needs). Then the run takes a minute or
                        two until all has settled. Below 60, no POS takes part that must be queried before a repeat,
                        because that alone takes a minute
  --seed <n>            the same seed gives the same orders and the same faults (default: from the clock)
  --only <kinds>        only these faults, separated by commas
  --doors <doors>       pubsub, or http: signals by POST /signal, statuses by webhook, no Google and no spill
                        (default pubsub)
  --orders <n>          orders a second (default 8, with --only away 4)
  --kills <n>           how many processes are killed for each replacement and each freeze (default 6)
  --away <seconds>      how long Postgres is down (default 10). With other faults, at most an eighth of the run.
                        With --only away, four processes run, up to three of them are killed meanwhile, and senders
                        repeat nothing. The run fails if less than 99.9 % are answered 200 within 1.5 s
  --recovery <seconds>  the time in which the service must recover from a fault of Postgres (default 5). On a slower
                        machine all time limits grow; on a machine that is over twice as slow they are not judged
  --json                print the result as JSON in the last line of standard output, all else on standard error
  -h, --help            print this

Faults: ${KINDS.join(', ')}
Special runs, only one at a time, only with --only, and with no other option than --seed (and --rolls):
  silent  all vendors that can be polled lose their webhooks, first for two minutes, then for good; about 14 minutes
  phones  a phone follows each order, and streams are cut 10,000 times: by the network, when processes are killed or
          replaced, and while Postgres is down; about five minutes
  kitchen
          kitchens flap, close for an hour with orders waiting and open; how long the topic waits for a POS's report
          (toldMaxMs); then a thousand simulated hours of POS systems that do not answer; about four minutes
  contacts
          orders in doubt, of which restaurants are told by e-mail and webhook, while the mail server refuses, is
          closed, hangs or loses connections, and the gateway is slow, hangs, refuses or repeats; some answer, twice at
          once; about three minutes
  archive processes die by SIGKILL at 50 random moments while they archive and drop a month of past orders; about a
          minute
  versions
          the last released version, built from the history of git, and this one on one database: processes are replaced
          forward and back, some are killed, and Postgres is down once while both versions run; about five minutes, or
          what --rolls <n> needs: how many processes are replaced (default 40)
`;

/** @throws WrongUsage */
export function readChaosArguments(argv: string[]): Arguments {
  const given = parse(argv);
  const kinds = given.only?.split(',').map((kind) => kind.trim());
  const alone = kinds?.length === 1 ? ALONE.find((each) => each === kinds[0]) : undefined;
  const unknown = alone === undefined ? kinds?.find((kind) => !KINDS.includes(kind as Kind)) : undefined;
  if (ALONE.some((each) => each === unknown)) throw new WrongUsage(`--only: no other fault goes with "${unknown}"`);
  if (unknown !== undefined) throw new WrongUsage(`--only: there is no fault "${unknown}"`);
  const doors = DOORS.find((each) => each === (given.doors ?? 'pubsub'));
  if (doors === undefined) throw new WrongUsage(`--doors takes ${DOORS.join(' or ')}, not "${given.doors}"`);
  if (alone !== undefined && given.doors !== undefined) throw new WrongUsage(`--doors: not with --only ${alone}`);
  const unfit = alone === undefined ? kinds?.find((kind) => !fits(kind as Kind, doors)) : undefined;
  if (unfit !== undefined) throw new WrongUsage(`--only: with --doors ${doors} there is no "${unfit}"`);
  const only = new Set((kinds as Kind[] | undefined) ?? KINDS.filter((kind) => fits(kind, doors)));
  const awayS = number('--away', given.away ?? '10', 1, 3_600);
  const needed = isAwayAlone(only) ? secondsToBeAway(awayS) : 0;
  const seconds = number('--seconds', given.seconds ?? String(Math.max(60, needed)), 5, 86_400);
  if (seconds < needed) throw new WrongUsage(`--away ${awayS} needs --seconds ${needed} at least, not "${seconds}"`);
  return {
    help: given.help ?? false,
    json: given.json ?? false,
    seconds,
    seed: number('--seed', given.seed ?? String(Date.now() % 1_000_000), 0, Number.MAX_SAFE_INTEGER),
    // After an outage, all orders that waited are sent at once, so there must be fewer.
    ordersPerSecond: number('--orders', given.orders ?? (isAwayAlone(only) ? '4' : '8'), 1, 100),
    recoveryS: number('--recovery', given.recovery ?? '5', 1, 600),
    kills: number('--kills', given.kills ?? '6', 1, 100),
    awayS,
    rolls: number('--rolls', given.rolls ?? '40', 4, 100_000),
    only,
    doors,
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
        doors: { type: 'string' },
        orders: { type: 'string' },
        recovery: { type: 'string' },
        kills: { type: 'string' },
        away: { type: 'string' },
        rolls: { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw new WrongUsage((error as Error).message, { cause: error });
  }
}
