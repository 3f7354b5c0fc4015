import { WrongEnvironment } from '../config.ts';
import { reporterOf, type Finding, type Part } from './finding.ts';

/**
 * Runs one part, so that it can fail without the others, by a wrong variable or an unexpected error.
 * @param environmentToo true if the environment is examined by itself, and reports a wrong variable
 */
export async function examinePart(
  part: Part,
  environmentToo: boolean,
  work: () => Promise<Finding[]>,
): Promise<Finding[]> {
  const { failed, skipped } = reporterOf(part);
  try {
    return await work();
  } catch (error) {
    if (error instanceof WrongEnvironment) {
      const wrong = variablesIn(error);
      if (part === 'environment' || !environmentToo) {
        return wrong.map(({ name, problem, example }) => failed(name, problem, `set it, for example: ${example}`));
      }
      return [skipped('all of it', `${wrong.map(({ name }) => name).join(', ')}: see environment`)];
    }
    // The error's message may quote what was read.
    const { name, code } = error as { name?: string; code?: unknown };
    const found = `unexpected ${[name ?? typeof error, ...(typeof code === 'string' ? [code] : [])].join(' ')}`;
    return [failed('all of it', found, `run it again: expediter doctor --only ${part}`)];
  }
}

function variablesIn({ message }: WrongEnvironment): { name: string; problem: string; example: string }[] {
  return message.split('\n').flatMap((line) => {
    const [, name, problem, example] = /^ {2}([A-Z_]+): (.*)\. Example: (.*)$/.exec(line) ?? [];
    return name === undefined || problem === undefined || example === undefined ? [] : [{ name, problem, example }];
  });
}
