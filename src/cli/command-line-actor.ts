import { userInfo } from 'node:os';
import type { Actor } from '../core/operators/operator.ts';

/** Who runs a command, as the machine knows them: before sudo, if that gave them another name. */
export function commandLineActor(): Actor {
  const name = process.env['SUDO_USER'] || machineUser();
  return { kind: 'command_line', id: name, name };
}

/** A container may run as a number that has no name. */
function machineUser(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
