import tab from '@bomb.sh/tab/commander';
import { Command } from 'commander';
import { version } from '../core/domain/version.ts';
import { addOperations } from '../operators/add-operations.ts';
import { OPERATIONS } from '../operators/registry.ts';
import { addApplyCommands } from './apply-command.ts';
import { readName, sayWho } from '../terminal/command-line-actor.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { examples } from '../terminal/print.ts';
import { withoutValues } from '../terminal/failures.ts';
import { addLoginCommands } from './login-commands.ts';
import { addMigrateCommand } from './migrate-command.ts';
import { addPlanCommand } from './plan-command.ts';
import { addPlatformCommands } from './platform-commands.ts';
import { addRecoverCommand } from './recover-command.ts';
import { addRekeyCommand } from './rekey-command.ts';

/** Builds all commands. Commander throws its errors, instead of exiting the process. */
export function buildProgram(): Command {
  // Commands inherit the program's settings when they are added, so the settings come first.
  const program = new Command('expediter')
    .description('Connects an ordering platform to the POS systems of its locations. Commands for operators.')
    .version(version)
    .option('--json', 'JSON instead of text, on standard output')
    .option('--as <name>', 'your name for the audit, added to the name of the system user', readName)
    .hook('preAction', (self) => sayWho(self.opts<{ as?: string }>().as))
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: (words, write) => write(withoutValues(words)) })
    .exitOverride()
    .addHelpText(
      'after',
      `${examples('expediter migrate', 'expediter doctor', 'expediter location list --json', 'expediter order show order-4711')}

Exit codes: 0 done, 1 failed or not possible now, 2 wrong usage or input, 3 not found`,
    );

  addMigrateCommand(program);
  addDoctorCommand(program);
  addOperations(program, OPERATIONS);
  addApplyCommands(program);
  addPlatformCommands(program);
  addRekeyCommand(program);
  addRecoverCommand(program);
  addPlanCommand(program);
  addLoginCommands(program);
  addCompletion(program);
  return program;
}

/** Adds `completion`, which prints a script for a shell, and the hidden `complete`, which the script runs. */
function addCompletion(program: Command): void {
  tab(program, { completionCommandName: 'completion' });
  const completion = program.commands.find((each) => each.name() === 'completion');
  completion
    ?.description('print a script that completes commands and options in a shell')
    .addHelpText('after', examples('expediter completion bash'));
}
