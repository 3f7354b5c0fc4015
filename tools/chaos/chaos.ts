import { USAGE, WrongUsage, readChaosArguments, type Arguments } from './read-chaos-arguments.ts';
import { runArchive } from './run-archive.ts';
import { runChaos } from './run-chaos.ts';
import { runContacts } from './run-contacts.ts';
import { runKitchens } from './run-kitchens.ts';
import { runPhones } from './run-phones.ts';
import { runSilent } from './run-silent.ts';
import { runVersions } from './run-versions.ts';

const COMPLAINTS_SHOWN = 20;
const STORY_SHOWN = 200;

// Without this, Google's client searches for a metadata server, which only exists on Google's machines.
process.env['METADATA_SERVER_DETECTION'] = 'none';

function argumentsOrExit(): Arguments {
  try {
    return readChaosArguments(process.argv.slice(2));
  } catch (error) {
    if (error instanceof WrongUsage) {
      process.stderr.write(`${error.message}\n\n${USAGE}`);
      process.exit(2);
    }
    throw error;
  }
}

const args = argumentsOrExit();
if (args.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const words = args.json ? process.stderr : process.stdout;
const say = (line: string): void => void words.write(`${line}\n`);

const ALONE = {
  silent: runSilent,
  phones: runPhones,
  kitchen: runKitchens,
  contacts: runContacts,
  archive: runArchive,
  versions: runVersions,
};
const {
  result: found,
  complaints,
  notJudged,
  story,
} = args.alone === undefined
  ? await runChaos(args, say)
  : { ...(await ALONE[args.alone](args.seed, say, args.rolls)), notJudged: [], story: [] };
const result = { seed: args.seed, ok: complaints.length === 0, ...found };
explain();
if (args.json) process.stdout.write(`${JSON.stringify(result)}\n`);
process.exitCode = result.ok ? 0 : 1;

function explain(): void {
  const { faults, ...counts } = { faults: {}, ...result };
  for (const [name, count] of Object.entries({ ...counts, ...faults })) say(`${name.padEnd(18)} ${count}`);
  for (const late of notJudged) say(`NOT JUDGED: ${late}`);
  for (const complaint of complaints.slice(0, COMPLAINTS_SHOWN)) say(`NOT AS PROMISED: ${complaint}`);
  if (complaints.length > COMPLAINTS_SHOWN) say(`and ${complaints.length - COMPLAINTS_SHOWN} more`);
  if (story.length > 0) say('\nThe first broken order, with the faults around it:');
  for (const { at, what, ...about } of story.slice(0, STORY_SHOWN)) {
    say(`${(at / 1_000).toFixed(3).padStart(9)}  ${what}  ${JSON.stringify(about)}`);
  }
}
