import { InvalidArgumentError, type Command } from 'commander';
import { readConfigOf } from '../config/config.ts';
import { planInstallation, type Plan } from './plan-installation.ts';
import { examples, print, sections, titledFacts } from '../terminal/print.ts';

const MOST = 10_000_000;
/** A seventh. */
const BUSIEST_HOUR = 0.143;

type Options = { locations: number; ordersPerLocation: number; busiestHour: number };

export function addPlanCommand(program: Command): void {
  program
    .command('plan')
    .description('compute what an installation needs: processes, Postgres, disk, traffic and money')
    .requiredOption('--locations <n>', 'the number of locations', readLocations)
    .requiredOption('--orders-per-location <n>', 'orders of a location on a busy day, on average', readCount)
    .option(
      '--busiest-hour <share>',
      "the share of a day's orders in its busiest hour, from 0.05 to 1",
      readShare,
      BUSIEST_HOUR,
    )
    .addHelpText(
      'after',
      `
Reads POOL_SIZE, WEBHOOK_RETENTION_DAYS, PII_RETENTION_DAYS and HISTORY_DAYS, with their defaults. An order
has five webhooks of 1,000 bytes, of which one changes nothing, and six live messages. Disk, traffic and money count every
day as a busy one. Measured processor times differ between machines.
${examples(
  'expediter plan --locations 10000 --orders-per-location 100',
  'expediter plan --locations 500 --orders-per-location 60 --busiest-hour 0.25 --json',
)}`,
    )
    .action((options: Options, command: Command) => {
      const env = readConfigOf(
        process.env,
        ...(['POOL_SIZE', 'WEBHOOK_RETENTION_DAYS', 'PII_RETENTION_DAYS', 'HISTORY_DAYS'] as const),
      );
      const plan = planInstallation({ ...options, ...env });
      print(command, plan, inWords(plan));
    });
}

function readLocations(text: string): number {
  if (Number.isInteger(Number(text))) return readCount(text);
  throw new InvalidArgumentError(`Use a whole number from 1 to ${MOST}.`);
}

function readCount(text: string): number {
  const count = Number(text);
  if (count > 0 && count <= MOST) return count;
  throw new InvalidArgumentError(`Use a number above 0 and up to ${MOST}.`);
}

function readShare(text: string): number {
  const share = Number(text);
  // An even day has a share of 0.04 in each hour.
  if (share >= 0.05 && share <= 1) return share;
  throw new InvalidArgumentError('Use a share from 0.05 to 1, such as 0.2.');
}

const number = (value: number, digits = 0): string =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const dollars = (value: number): string => `$${number(value)}`;

function inWords({ perSecond, cores, postgres, disk, traffic, money, doubts, ...plan }: Plan): string {
  return sections(
    titledFacts('Load', {
      '  orders a day': number(plan.ordersPerDay),
      '  in the busiest hour': `${number(perSecond.orders, 1)} orders, ${number(perSecond.webhooks, 1)} webhooks and ${number(perSecond.messages, 1)} live messages a second`,
    }),
    titledFacts('Needs', {
      '  processes': `${plan.processes} with 1 vCPU and 1 GiB. In the busiest hour they use ${number(cores.service, 2)} cores. One of them may fail`,
      '  Postgres': `${postgres.machine}: ${postgres.vcpus} vCPU, ${postgres.memoryGb} GB of memory. In the busiest hour it uses ${number(cores.postgres, 2)} cores`,
      '  connections': `max_connections of ${postgres.connections} or more`,
      '  disk': `${number(disk.afterAYear)} GB after a year, ${number(disk.afterFive)} GB after five; provision ${number(disk.provisioned)} GB`,
      '  traffic a month': `${number(traffic.egress)} GB to POS systems and the platform, ${number(traffic.pubsub)} GB through Pub/Sub`,
    }),
    titledFacts("Money a month, by Google's list prices of us-central1, 2026-11", {
      '  Cloud Run': dollars(money.service),
      '  Cloud SQL with high availability': dollars(money.postgres),
      '  its two disks': dollars(money.disk),
      '  Pub/Sub with one subscription': dollars(money.pubsub),
      '  egress to the internet': dollars(money.egress),
      '  total of these': dollars(money.total),
    }),
    doubts.map((doubt) => `Note: ${doubt}.`).join('\n'),
  );
}
