import { Command } from 'commander';
import { version } from '../core/domain/version.ts';
import { addOperations } from '../operators/add-operations.ts';
import { OPERATIONS } from '../operators/registry.ts';
import { addCertifyCommand } from './certify-command.ts';
import { readName, sayWho } from './command-line-actor.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { examples } from './print.ts';
import { withoutValues } from './failures.ts';
import { addMigrateCommand } from './migrate-command.ts';
import { addPlatformCommands } from './platform-commands.ts';
import { addProviderCommands } from './provider-commands.ts';
import { addRekeyCommand } from './rekey-command.ts';

/** Builds all commands. Where commander would exit the process, it throws instead. */
export function buildProgram(): Command {
  // Commands inherit these settings, so they come first.
  const program = new Command('expediter')
    .description('Between an ordering platform and the POS systems of its locations: the commands of its operators.')
    .version(version)
    .option('--json', 'JSON instead of text, on standard output')
    .option('--as <name>', 'your name for the audit, next to the name of the system user', readName)
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
  addOperations(program, OPERATIONS);
  addPlatformCommands(program);
  addProviderCommands(program);
  addCertifyCommand(program);
  addRekeyCommand(program);
  return program;
}
