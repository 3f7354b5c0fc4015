import { CommanderError } from 'commander';
import { WrongEnvironment } from '../config/config.ts';
import { WrongLocation } from '../core/locations/locations.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { printError, terminalText } from '../observe/terminal-text.ts';

const FAILED = 1;
const WRONG_INPUT = 2;
const NOT_FOUND = 3;

/** What is wrong with files, one line each. The lines are our own words. */
export class WrongFiles extends Error {
  override readonly name = 'WrongFiles';
}

/** Prints an error to standard error. @returns the exit code */
export function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_INPUT;
  printError(`error: ${describe(error)}`);
  if (error instanceof NotDone) return { 400: WRONG_INPUT, 404: NOT_FOUND }[error.statusCode as number] ?? FAILED;
  return error instanceof WrongLocation ? WRONG_INPUT : FAILED;
}

/** Describes an error. A refused connection is an AggregateError: one error per address, and no message of its own. */
export function describe(error: unknown): string {
  if (error instanceof WrongEnvironment || error instanceof WrongFiles) return error.message;
  if (error instanceof AggregateError) return [...new Set(error.errors.map(describe))].join(', ');
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n', 1)[0] ?? '';
}

/** Removes values from commander's message, because somebody may have typed a secret in the wrong place. */
export function withoutValues(words: string): string {
  const without = words.replace(/(but got \d+): .*$/s, '$1.\n');
  return terminalText(without.replace(/^(error: unknown option '[^=']*)=.*?'(?=$|\n)/s, "$1'"));
}
