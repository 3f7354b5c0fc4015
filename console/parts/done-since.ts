import { describeAction } from '../../src/core/domain/describe-action.ts';
import type { RecordedAction } from '../wire.ts';
import { dayAndTime } from './clock-time.ts';
import { NAMED } from './names.ts';

type Acted = { actions: readonly RecordedAction[] };

/** The last of some actions that was done, such as “Anna closed the case at 12:03”. */
export function lastOf({ actions }: Acted, isOne: (action: RecordedAction) => boolean): string | undefined {
  const done = actions.filter((each) => each.outcome === 'done' && describeAction(each).isChange && isOne(each));
  const last = done.toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at)).at(-1);
  return last && `${describeAction(last, NAMED).sentence} at ${dayAndTime(last.at)}`;
}

/**
 * What was done since a dialog was opened, in words. Undefined if the dialog may still act.
 * @param before the order or the location as it was then
 * @param acts the codes of the actions that do what the dialog asks
 * @param isOver whether nothing is left to do for another reason
 */
export function doneSince<Shown extends Acted>(
  before: Shown,
  now: Shown,
  acts: readonly string[],
  isOver = false,
): string | undefined {
  const known = new Set(before.actions.map(({ auditId }) => auditId));
  const isNew = ({ auditId }: RecordedAction): boolean => !known.has(auditId);
  const done = lastOf(now, (each) => isNew(each) && acts.includes(each.action));
  if (done === undefined && !isOver) return undefined;
  const did = done ?? lastOf(now, (each) => isNew(each) && each.action !== 'note');
  return did === undefined ? 'The order has changed meanwhile. Nothing was done now.' : `${did}. Nothing was done now.`;
}
