import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { groupAt, readInput, withAsk } from '../operators/add-operations.ts';
import { LOCATIONS } from '../operators/location-operations.ts';
import { changeRow } from '../operators/location-text.ts';
import type { ShownProvider } from '../core/locations/describe-settings.ts';
import { listProviders } from '../operators/provider-operations.ts';
import { type Ask, type Operation, type Options } from '../operators/operation.ts';
import { inTurns } from '../core/domain/in-turns.ts';
import { NotDone } from '../core/operators/not-done.ts';
import type { LocationChange, PutLocation } from '../core/locations/put-location.ts';
import type { SeenLocation, ShownLocation } from '../core/locations/show-location.ts';
import { WrongFiles, describe } from '../terminal/failures.ts';
import { SCHEMA_FILE, locationFileSchema, readLocationFiles, writeLocationFile } from './location-files.ts';
import { examples, print, sections, table } from '../terminal/print.ts';

const { put, list, show, remove } = LOCATIONS;
/** Number of locations at the same time. */
const AT_ONCE = 8;

type Step = {
  locationId: string;
  action: 'create' | 'change' | 'remove' | 'none';
  changes: readonly LocationChange[];
  /** What is unusual, for people. */
  warnings: readonly string[];
  /** Why it cannot be done, or was not done. */
  problem?: string;
};

type ApplyOptions = { files: string; secrets?: string[]; yes?: true; prune?: true; anyway?: true; group?: string };

export function addApplyCommands(program: Command): void {
  program
    .command('apply')
    .description('make the locations as a folder of YAML files describes them. Without --yes, only print the plan')
    .requiredOption('-f, --files <path>', 'a folder, with all its .yaml files, or one file')
    .option('--secrets <folders...>', 'folders from which file:PATH may also read secrets, such as /run/secrets')
    .option('--yes', 'carry out the plan')
    .option('--prune', 'also remove locations that no file describes')
    .option('--anyway', 'also change integrations whose POS has orders that have not ended')
    .addOption(new Option('--group <name>', 'with --prune: only locations of this group are removed'))
    .addHelpText(
      'after',
      `
A file has one document per location: id, integration, settings, and if wanted name, timeZone, country, groups,
contacts, address and backOfficeUrl. Secrets stand somewhere else, and are given by reference: env:NAME (a variable),
file:PATH (relative to the file, and below the folder of --files or --secrets) or stdin:NAME (a line NAME=value of standard
input). In a setting that is not a secret, nothing is read: write its value, with text: before it if it begins with env:,
file:, stdin: or text:. "export" writes such files, with their JSON Schema.

What a file leaves out is removed. If a run is stopped, repeat it. With --prune, a location with orders that have not
ended is not removed.

Exit codes: 0 nothing to do, or done; 2 changes are planned; 1 something is wrong, or could not be done.
${examples('expediter apply -f locations/', 'expediter apply -f locations/ --yes --prune --group brand-nord')}`,
    )
    .action(async (options: ApplyOptions, command: Command) => {
      await withAsk([put, list, remove, listProviders], async (ask) => apply(ask, options, command), AT_ONCE);
    });

  program
    .command('export')
    .description('write all locations as YAML files, which "apply" reads. Secrets become references to variables')
    .requiredOption('--to <folder>', 'the folder; it is created if necessary')
    .option('--group <name>', 'only locations of this group')
    .option('--overwrite', 'replace files that exist')
    .addHelpText('after', examples('expediter export --to exported/'))
    .action(async (options: { to: string; group?: string; overwrite?: true }, command: Command) => {
      await withAsk([list, show, listProviders], async (ask) => exportAll(ask, options, command), AT_ONCE);
    });

  groupAt(program, ['location'])
    .command('schema')
    .description('print the JSON Schema of the files of "apply", for editors')
    .addHelpText('after', examples('expediter location schema > location.schema.json'))
    .action(async (_options: object, command: Command) => {
      const schema = await withAsk([listProviders], async (ask) => locationFileSchema(await providersBy(ask)));
      print(command, schema, JSON.stringify(schema, undefined, 2));
    });
}

async function providersBy(ask: Ask): Promise<readonly ShownProvider[]> {
  return ((await ask(listProviders, {})) as { providers: ShownProvider[] }).providers;
}

async function locationsBy(ask: Ask, group: string | undefined): Promise<SeenLocation[]> {
  return ((await ask(list, readInput(list, { group }))) as { locations: SeenLocation[] }).locations;
}

async function apply(
  ask: Ask,
  { files, secrets, yes, prune, anyway, group }: ApplyOptions,
  command: Command,
): Promise<void> {
  const { locations, problems } = await readLocationFiles(files, await providersBy(ask), secrets);
  // Exit code 2 means planned changes, so wrong files are an error like any other.
  if (problems.length > 0) throw new WrongFiles(problems.join('\n'));
  const described = new Set(locations.map(({ id }) => id));
  const inputs = locations.map(({ id, file: _file, ...location }) => ({ ...location, locationId: id, anyway }));
  const left = prune ? (await locationsBy(ask, group)).filter(({ locationId }) => !described.has(locationId)) : [];

  const puts = await inTurns(AT_ONCE, inputs, (input) => planPut(ask, input));
  const removals = await inTurns(AT_ONCE, left, ({ locationId }) =>
    step(locationId, 'remove', () => perform(ask, remove, { locationId, unpaused: true, dryRun: true })),
  );
  const plan = [...puts, ...removals];
  const isStuck = plan.some(({ problem }) => problem !== undefined);
  if (!yes || isStuck) {
    print(command, { plan }, stepsInWords(plan, 'planned'));
    if (isStuck) throw new Error('The plan cannot be carried out. Nothing was changed.');
    if (plan.some(({ action }) => action !== 'none')) process.exitCode = 2;
    return;
  }
  const done = await inTurns(AT_ONCE, plan, async (planned, at) => {
    const { locationId, action } = planned;
    if (action === 'none') return planned;
    return step(locationId, action, () =>
      action === 'remove' ? perform(ask, remove, { locationId, unpaused: true }) : perform(ask, put, inputs[at] ?? {}),
    );
  });
  print(command, { done }, stepsInWords(done, 'done'));
  if (done.some(({ problem }) => problem !== undefined))
    throw new Error('Not everything was done. Repeat the command.');
}

async function planPut(ask: Ask, input: Options & { locationId: string }): Promise<Step> {
  let action: Step['action'] = 'change';
  const planned = await step(input.locationId, action, async () => {
    const would = (await perform(ask, put, { ...input, dryRun: true })) as PutLocation;
    action = would.created ? 'create' : would.changes.length > 0 ? 'change' : 'none';
    return would;
  });
  return { ...planned, action };
}

function perform(ask: Ask, operation: Operation, input: Options): Promise<object> {
  return ask(operation, readInput(operation, input));
}

/** Runs one step. A refusal is its `problem`, so that the other steps still run. */
async function step(locationId: string, action: Step['action'], work: () => Promise<unknown>): Promise<Step> {
  try {
    const { changes = [], warnings = [] } = ((await work()) ?? {}) as Partial<PutLocation>;
    return { locationId, action, changes, warnings };
  } catch (error) {
    if (!(error instanceof NotDone)) throw error;
    return { locationId, action, changes: [], warnings: [], problem: describe(error) };
  }
}

const WORDS = {
  create: { planned: 'to create', done: 'created' },
  change: { planned: 'to change', done: 'changed' },
  remove: { planned: 'to remove', done: 'removed' },
  none: { planned: 'unchanged', done: 'unchanged' },
};

function stepsInWords(steps: readonly Step[], are: 'planned' | 'done'): string {
  const rows = steps
    .filter(({ action, problem }) => action !== 'none' || problem !== undefined)
    .flatMap(({ locationId, action, changes, problem }) => {
      const isStuck = problem !== undefined;
      if (isStuck) return [{ location: locationId, '': 'not possible', field: '', change: problem }];
      if (action !== 'change') {
        const field = changes.map((change) => change.field).join(', ');
        return [{ location: locationId, '': action, field, change: '' }];
      }
      return changes.map((change, nth) => ({
        location: nth === 0 ? locationId : '',
        '': nth === 0 ? action : '',
        ...changeRow(change),
      }));
    });
  const counts = Object.entries(WORDS).map(([action, words]) => {
    const count = steps.filter((each) => each.action === action && each.problem === undefined).length;
    return `${count} ${words[are]}`;
  });
  const failed = steps.filter(({ problem }) => problem !== undefined).length;
  const warned = steps.flatMap(({ locationId, warnings }) => warnings.map((each) => `Warning: ${locationId}: ${each}`));
  return sections(
    table(rows),
    warned.join('\n'),
    `${counts.join(', ')}${failed > 0 ? `, ${failed} not possible` : ''}`,
  );
}

async function exportAll(
  ask: Ask,
  { to, group, overwrite }: { to: string; group?: string; overwrite?: true },
  command: Command,
): Promise<void> {
  const all = await locationsBy(ask, group);
  await mkdir(to, { recursive: true });
  const write = (name: string, content: string): Promise<void> =>
    writeFile(join(to, name), content, { flag: overwrite === true ? 'w' : 'wx' }).catch(
      (error: NodeJS.ErrnoException) => {
        throw new Error(`${join(to, name)} cannot be written (${error.code}). --overwrite replaces files that exist`);
      },
    );
  const variables: string[] = [];
  const done = await inTurns(AT_ONCE, all, ({ locationId }) =>
    step(locationId, 'none', async () => {
      const written = writeLocationFile((await ask(show, { locationId })) as ShownLocation);
      await write(written.file, written.content);
      variables.push(...written.variables);
    }),
  );
  const schema = locationFileSchema(await providersBy(ask));
  await writeFile(join(to, SCHEMA_FILE), `${JSON.stringify(schema, undefined, 2)}\n`);
  const names = variables.toSorted();
  const also = names.length === 0 ? '' : `\nSet these variables before you apply the files: ${names.join(', ')}`;
  const left = done.flatMap(({ locationId, problem }) => (problem === undefined ? [] : `${locationId}: ${problem}`));
  const locations = all.length - left.length;
  print(command, { locations, variables: names }, `${locations} locations are in ${to}${also}`);
  if (left.length > 0) throw new Error(`Not every location was exported. ${left.join('; ')}`);
}
