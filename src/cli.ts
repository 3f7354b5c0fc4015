#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addDeliveryCommands } from './cli/delivery.ts';
import { examples } from './cli/examples.ts';
import { report, withoutValues } from './cli/failures.ts';
import { addLocationCommands } from './cli/location.ts';
import { addMigrateCommand } from './cli/migrate.ts';
import { addOrderCommands } from './cli/order.ts';
import { addProviderCommands } from './cli/provider.ts';
import { addTokenCommands } from './cli/token.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

// Commands inherit what is set here, so it comes before them.
const program = new Command('expediter')
  .description('Between an ordering platform and the POS systems of its locations: the commands of its operators.')
  .version(version)
  .option('--json', 'JSON instead of words, on standard output')
  .configureHelp({ showGlobalOptions: true })
  .configureOutput({ outputError: (words, write) => write(withoutValues(words)) })
  .exitOverride()
  .addHelpText(
    'after',
    `${examples('expediter migrate', 'expediter location list --json', 'expediter order show order-4711')}

Exit codes: 0 fine, 1 it failed or cannot be done now, 2 wrong usage or bad input, 3 there is no such thing`,
  );

addMigrateCommand(program);
addLocationCommands(program);
addTokenCommands(program);
addOrderCommands(program);
addDeliveryCommands(program);
addProviderCommands(program);

// Whoever reads the output may stop early, as "| head" does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  // Not process.exit, which would cut off what is still to be written to a pipe.
  process.exitCode = report(error);
}
