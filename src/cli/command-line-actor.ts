import { userInfo } from 'node:os';
import { InvalidArgumentError } from 'commander';
import type { Actor } from '../core/operators/operator.ts';

/** The user's name for themselves, from `--as`. */
let says: string | undefined;

/** @throws InvalidArgumentError */
export function readName(text: string): string {
  if (/^[^\p{C}]{1,100}$/u.test(text)) return text;
  throw new InvalidArgumentError('Use 1 to 100 characters on one line.');
}

export function sayWho(name: string | undefined): void {
  says = name;
}

/** The user of a command by the system's name. Names that anyone can claim, such as SUDO_USER, come after it. */
export function commandLineActor(): Actor {
  const id = machineUser();
  return { kind: 'command_line', id, name: says === undefined ? id : `${id} as ${says}` };
}

/** The user's name. A container may run as a number without a name. */
function machineUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.() ?? 'unknown'}`;
  }
}
