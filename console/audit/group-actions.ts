import { describeAction } from '../../src/core/domain/describe-action.ts';
import type { RecordedAction } from '../wire.ts';

const WITHIN_MS = 60_000;

/** Consecutive actions of one person, newest first, that are one line. Never empty. */
export type ActionGroup<Action> = readonly [Action, ...Action[]];

/** Puts consecutive actions together: the same action of the same person, each within a minute of the one before. */
export function groupActions<Action extends RecordedAction>(actions: readonly Action[]): ActionGroup<Action>[] {
  const groups: [Action, ...Action[]][] = [];
  for (const action of actions) {
    const group = groups.at(-1);
    const newer = group?.at(-1);
    if (group !== undefined && newer !== undefined && isOfOneRun(newer, action)) group.push(action);
    else groups.push([action]);
  }
  return groups;
}

function isOfOneRun(newer: RecordedAction, older: RecordedAction): boolean {
  return (
    newer.by.kind === older.by.kind &&
    newer.by.id === older.by.id &&
    kindOf(newer.action) === kindOf(older.action) &&
    newer.outcome === older.outcome &&
    // The line of a group says what each of its actions did.
    (newer.action !== older.action || describeAction(newer).sentence === describeAction(older).sentence) &&
    Date.parse(newer.at) - Date.parse(older.at) <= WITHIN_MS
  );
}

/** How often it was done. What one request did at several locations counts once, each replay of a replay of many too. */
export function timesOf(group: readonly (RecordedAction & { requestId?: string | null })[]): number {
  const whole = group.filter(({ action, after }) => action !== 'replay many' && !/^orders \d+$/.test(after ?? ''));
  const many = group.some(({ action }) => action === 'replay many');
  return new Set((whole.length === 0 ? group : whole).map(({ requestId, at }) => (many ? at : (requestId ?? at)))).size;
}

/** A replay of all that match is recorded as such, and each of its replays as well. */
function kindOf(action: string): string {
  return action === 'replay many' ? 'replay' : action;
}
