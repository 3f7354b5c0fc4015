import type { Command } from 'commander';
import { facts, print, table } from '../terminal/print.ts';
import type { Check, Finding } from './check.ts';

const STATES = ['failed', 'warning', 'skipped', 'ok'] as const;

/** Prints the checks of a command, and sets exit code 1 if a check failed. Warnings do not count. */
export function printChecks(command: Command, checks: readonly Check[], value: object, forPeople: string): void {
  print(command, value, forPeople);
  if (!isFine(checks)) process.exitCode = 1;
}

export function isFine(checks: readonly Check[]): boolean {
  return checks.every(({ state }) => state !== 'failed');
}

/** Counts checks by their states, such as `1 failed, 12 ok`. */
export function sumOf(checks: readonly Check[]): string {
  const counts = STATES.map((state) => ({ state, count: checks.filter((each) => each.state === state).length }));
  return counts.flatMap(({ state, count }) => (count > 0 ? [`${count} ${state}`] : [])).join(', ');
}

export function describeCheck(check: Check): string {
  return check.state === 'failed' ? describeFailure(check) : lineOf(check);
}

/** Formats a check in one line. Its first column is as wide as the longest state, because later checks are unknown. */
export function lineOf({ state, check, found }: Check): string {
  return `${state.padEnd('skipped '.length)} ${check}: ${found}`;
}

export function describeFailure({ check, found, request, expected, toDo }: Check): string {
  return facts({ failed: check, found, 'the request': request, expected, 'to do': toDo });
}

export function tableOf(findings: readonly Finding[]): string {
  const rows = findings.map(({ state, part, check, found, toDo }) => ({
    '': state,
    part,
    check,
    found: toDo === undefined ? found : `${found}. To do: ${toDo}`,
  }));
  return table(rows, '');
}
