import { InvalidArgumentError, type Command } from 'commander';
import { PARTS, type Part } from '../diagnostics/check.ts';
import { isFine, printChecks, sumOf, tableOf } from '../diagnostics/print-checks.ts';
import { examples } from './print.ts';

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check everything that a deployment needs, and say how to fix problems')
    .option('--only <parts>', `separated by commas: ${PARTS.join(', ')}`, readParts)
    .addHelpText(
      'after',
      `
Run it where the service runs, with its environment: it asks Postgres, the ordering platform, Pub/Sub, the issuer of push
tokens, PUBLIC_URL and the POS of each location, as the service would. Nothing is ordered, published or changed, but that
an access token may be renewed. It ends within 30 s, and prints no secret and no member data.
A finding is ok, a warning, failed, or skipped because something that it needs failed. Exits 1 when something failed;
warnings do not count.
${examples('expediter doctor', 'expediter doctor --only database,platform --json')}`,
    )
    .action(async ({ only }: { only?: Part[] }, command: Command) => {
      // Imported here, since no other command needs it.
      const { examine } = await import('../diagnostics/doctor.ts');
      const findings = await examine(process.env, only);
      const inWords = `${tableOf(findings)}\n\n${sumOf(findings)}`;
      printChecks(command, findings, { ok: isFine(findings), findings }, inWords);
    });
}

function readParts(text: string): Part[] {
  return text.split(',').map((name) => {
    const part = PARTS.find((each) => each === name.trim());
    if (part === undefined) throw new InvalidArgumentError(`Use some of ${PARTS.join(', ')}.`);
    return part;
  });
}
