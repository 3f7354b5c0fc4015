import { InvalidArgumentError, type Command } from 'commander';
import { PARTS, type Finding, type Part } from '../diagnostics/check.ts';
import { isFine, printChecks, sumOf, tableOf } from '../diagnostics/print-checks.ts';
import { examineDeployment } from '../operators/diagnostic-operations.ts';
import { asTyped, examples } from '../terminal/print.ts';
import { serviceOf, type Service } from '../terminal/stored-login.ts';

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check everything that a deployment needs, and say how to fix each problem')
    .option('--only <parts>', `check only these parts, separated by commas: ${PARTS.join(', ')}`, readParts)
    .option('--local', 'check this machine, although EXPEDITER_URL or a login names a service')
    .addHelpText(
      'after',
      `
With EXPEDITER_URL, or with a login and no DATABASE_URL, the service checks itself, which needs the role admin. Otherwise,
or with --local, run it on the machine of the service, with its environment. Like the service, it calls Postgres, the ordering platform,
Pub/Sub, the issuer of push tokens, PUBLIC_URL and the POS of each location. It orders and publishes nothing, and
changes nothing, except that it may renew an access token. It ends within 30 s, and prints no secret and no member data.
A check is ok, a warning, failed, or skipped because something that it needs failed. Exits 1 if a check failed.
${examples('expediter doctor', 'expediter doctor --only database,platform --json')}`,
    )
    .action(async ({ only, local }: { only?: Part[]; local?: true }, command: Command) => {
      const service = local ? undefined : await serviceOf(process.env);
      const findings = service === undefined ? await examineHere(only) : await examineThere(service, only);
      const inWords = asTyped(`${tableOf(findings)}\n\n${sumOf(findings)}`);
      printChecks(command, findings, { ok: isFine(findings), findings }, inWords);
    });
}

async function examineHere(only: Part[] | undefined): Promise<Finding[]> {
  // Imported here, because no other command needs it.
  const { examine } = await import('../diagnostics/doctor.ts');
  return examine(process.env, only);
}

async function examineThere(service: Service, only: Part[] | undefined): Promise<Finding[]> {
  const { askService } = await import('../operators/ask-service.ts');
  return ((await askService(service)(examineDeployment, { only })) as { findings: Finding[] }).findings;
}

function readParts(text: string): Part[] {
  return text.split(',').map((name) => {
    const part = PARTS.find((each) => each === name.trim());
    if (part === undefined) throw new InvalidArgumentError(`Use some of ${PARTS.join(', ')}.`);
    return part;
  });
}
