import { userInfo } from 'node:os';
import { InvalidArgumentError } from 'commander';
import type { Actor } from '../core/operators/operator.ts';

/** What who runs the command says of themselves, by `--as`. */
let says: string | undefined;

/** @throws InvalidArgumentError */
export function readName(text: string): string {
  if (/^[^\p{C}]{1,100}$/u.test(text)) return text;
  throw new InvalidArgumentError('It takes 1 to 100 characters of one line.');
}

export function sayWho(name: string | undefined): void {
  says = name;
}

/** Who runs a command, as the system knows them. What anybody may say, SUDO_USER among it, stands behind that. */
export function commandLineActor(): Actor {
  const id = machineUser();
  return { kind: 'command_line', id, name: says === undefined ? id : `${id} as ${says}` };
}

/** A container may run as a number that has no name. */
function machineUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.() ?? 'unknown'}`;
  }
}
