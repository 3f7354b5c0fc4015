import { doneSince } from '../parts/done-since.ts';
import type { ShownOrder } from '../wire.ts';
import { canBeCancelled, howCancelStands } from './how-cancel-stands.ts';
import { howChangeStands } from './how-change-stands.ts';
import { whatToDo } from './what-to-do.ts';

/** What a dialog of the page asks. */
export type Asking = 'retry' | 'cancel' | 'there' | 'not there' | 'cancelled' | 'continues' | 'done' | 'too late';

/** What the dialog does, by its action's code, and whether the page still offers it. */
const ASKS: Readonly<Record<Asking, readonly [act: string, isOffered: (now: ShownOrder) => boolean | undefined]>> = {
  retry: ['retry', (now) => now.placement.underWay || whatToDo(now)?.canRetry],
  cancel: ['cancel', (now) => canBeCancelled(now) || howCancelStands(now)?.canCancel],
  there: ['resolve', (now) => whatToDo(now)?.canResolve],
  'not there': ['resolve', (now) => whatToDo(now)?.canResolve],
  cancelled: ['conclude cancel', (now) => howCancelStands(now)?.canConclude],
  continues: ['conclude cancel', (now) => howCancelStands(now)?.canConclude],
  done: ['answer change', (now) => howChangeStands(now)?.canAnswer],
  'too late': ['answer change', (now) => howChangeStands(now)?.canAnswer],
};

/** What was done since a dialog was opened, in words. Undefined if it may still act. */
export function doneMeanwhile(asking: Asking, before: ShownOrder, now: ShownOrder): string | undefined {
  const [act, isOffered] = ASKS[asking];
  return doneSince(before, now, [act], isOffered(now) !== true);
}
