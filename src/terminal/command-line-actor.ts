import { userInfo } from 'node:os';
import { InvalidArgumentError } from 'commander';
import type { Actor } from '../core/operators/operator.ts';

/** The name that the user gave with `--as`. */
let says: string | undefined;

/** @throws InvalidArgumentError */
export function readName(text: string): string {
  if (/^[^\p{C}]{1,100}$/u.test(text)) return text;
  throw new InvalidArgumentError('Use 1 to 100 characters on one line.');
}

export function sayWho(name: string | undefined): void {
  says = name;
}

/** The user of the command. The system's user name comes first, because anyone can claim any name with `--as`. */
export function commandLineActor(): Actor {
  const id = machineUser();
  return { kind: 'command_line', id, name: says === undefined ? id : `${id} as ${says}` };
}

/** The system's user name, or the user id if the user has no name, as in some containers. */
function machineUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.() ?? 'unknown'}`;
  }
}
