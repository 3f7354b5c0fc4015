import { InvalidArgumentError, type Command } from 'commander';
import { examples, PAST, readPast } from '../terminal/print.ts';
import type { RecoverOptions } from './run-recovery.ts';

export function addRecoverCommand(program: Command): void {
  program
    .command('recover')
    .description(
      'after a restore or a failover that lost commits: settle every order since then. Repeat until it exits 0',
    )
    .option(
      '--lost-from <time>',
      `since when data is missing: ${PAST}. It names the recovery. Without it, the last one continues`,
      readPast,
    )
    .option(
      '--lost-until <time>',
      `when the service stopped: ${PAST}; by default now. No POS has later orders`,
      readPast,
    )
    .option('--signals <subscription>', "a pull subscription of the platform's signals that stores messages")
    .option('--live <subscription>', 'the same of STATUS_TOPIC: statuses that members saw are applied again')
    .option('--orders <file>', 'order ids that the platform lists, one on each line; - for standard input')
    .option('--new', 'begin another recovery, because data was lost again')
    .option('--running', 'begin although the service is running')
    .option('--quiet <seconds>', 'a subscription is read when it delivers nothing for so long', readSeconds, 60)
    .addHelpText(
      'after',
      `
Stop the service first, run this, start the service, then repeat this command until it exits 0. The first run raises
the numbers of live messages, and puts every unfinished order in doubt, because it may have been sent since. Each run
records orders that the database has forgotten, in doubt too, settles what the live messages prove, replays webhooks that
matched no order, and lists what is left. A POS that deduplicates gets an order in doubt again, another POS is queried
first, and an order that cannot be queried is listed for a person.
Name --signals or --orders. Needs the environment of the service. See docs/recovery.md.

Exit codes: 0 all is settled; 1 something is left, or could not be done; 2 wrong usage.
${examples(
  'expediter recover --lost-from 2027-01-31T18:00:00Z --signals order-placed-replay --live order-status-replay',
  'expediter recover --signals order-placed-replay --live order-status-replay --json',
  'expediter recover --lost-from 2h --orders ids.txt',
)}`,
    )
    .action(async (options: RecoverOptions, command: Command) => {
      // Imported here, because no other command needs it.
      const { recover } = await import('./run-recovery.ts');
      await recover(options, command);
    });
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= 600) return seconds;
  throw new InvalidArgumentError('Use a number of seconds, at most 600.');
}
