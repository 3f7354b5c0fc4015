import { Command } from 'commander';
import { version } from '../server/version.ts';
import { addOperations } from '../operators/add-operations.ts';
import { LOCATION_OPERATIONS, TOKEN_OPERATIONS } from '../operators/location-operations.ts';
import { ORDER_OPERATIONS } from '../operators/order-operations.ts';
import { READING_OPERATIONS } from '../operators/reading-operations.ts';
import { RIGHTS_OPERATIONS } from '../operators/rights-operations.ts';
import { WEBHOOK_OPERATIONS } from '../operators/webhook-operations.ts';
import { addCertifyCommand } from './certify-command.ts';
import { readName, sayWho } from './command-line-actor.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { examples } from './print.ts';
import { withoutValues } from './failures.ts';
import { addLocationCommands } from './location-commands.ts';
import { addMemberCommands } from './member-commands.ts';
import { addMigrateCommand } from './migrate-command.ts';
import { addPlatformCommands } from './platform-commands.ts';
import { addProviderCommands } from './provider-commands.ts';
import { addRekeyCommand } from './rekey-command.ts';
import { addTokenCommands } from './token-commands.ts';

/** Builds all commands. Where the commander would end the process, it throws instead. */
export function buildProgram(): Command {
  // Commands inherit these settings, so they come first.
  const program = new Command('expediter')
    .description('Between an ordering platform and the POS systems of its locations: the commands of its operators.')
    .version(version)
    .option('--json', 'JSON instead of words, on standard output')
    .option('--as <name>', 'who you say you are, beside the user of the system, in the audit', readName)
    .hook('preAction', (self) => sayWho(self.opts<{ as?: string }>().as))
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: (words, write) => write(withoutValues(words)) })
    .exitOverride()
    .addHelpText(
      'after',
      `${examples('expediter migrate', 'expediter doctor', 'expediter location list --json', 'expediter order show order-4711')}

Exit codes: 0 fine, 1 it failed or cannot be done now, 2 wrong usage or bad input, 3 there is no such thing`,
    );

  addMigrateCommand(program);
  addDoctorCommand(program);
  addLocationCommands(program);
  addOperations(program, LOCATION_OPERATIONS);
  addTokenCommands(program);
  addOperations(program, TOKEN_OPERATIONS);
  addOperations(program, ORDER_OPERATIONS);
  addOperations(program, WEBHOOK_OPERATIONS);
  addPlatformCommands(program);
  addProviderCommands(program);
  addCertifyCommand(program);
  addMemberCommands(program);
  addOperations(program, RIGHTS_OPERATIONS);
  addRekeyCommand(program);
  addOperations(program, READING_OPERATIONS);
  return program;
}
