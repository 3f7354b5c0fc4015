import { doneSince } from '../parts/done-since.ts';
import type { AnswerChange, ConcludeCancel, Resolve, Resolved, Retried, ShownOrder } from '../wire.ts';
import { canBeCancelled, cancelMeans, howCancelStands } from './how-cancel-stands.ts';
import { howChangeStands } from './how-change-stands.ts';
import { answersMean, retryMeans, whatToDo } from './what-to-do.ts';

/** What a dialog of the page asks. */
export type Asking = 'retry' | 'cancel' | 'there' | 'not there' | 'cancelled' | 'continues' | 'done' | 'too late';

/** A question, and what its answer does. */
type Ask = {
  /** The code of the action. */
  act: string;
  /** The rest of the path of the request. */
  path: string;
  body?: (story: ShownOrder, posId: string) => object;
  /** Whether the page still offers it. */
  isOffered: (story: ShownOrder) => boolean | undefined;
  title: (order: string) => string;
  /** The words of the button. */
  action: string | ((story: ShownOrder) => string);
  isDangerous?: true;
  /** The consequences, sentence by sentence. `now` in milliseconds. `posCancels` is false if the POS cannot cancel. */
  means: (story: ShownOrder, now: number, posCancels?: boolean) => readonly string[];
  /** What was done. */
  told: (answer: Partial<Retried & Resolved>) => string;
};

const resolve = (isThere: boolean): Ask => ({
  act: 'resolve',
  path: 'resolve',
  body: (_, posId) =>
    ({ there: isThere, ...(isThere && posId !== '' && { providerOrderId: posId }) }) satisfies Partial<Resolve>,
  isOffered: (story) => whatToDo(story)?.canResolve,
  title: (order) => `${order}: it is ${isThere ? '' : 'not '}at the POS?`,
  action: isThere ? 'It is there' : 'It is not there',
  ...(!isThere && { isDangerous: true }),
  means: (story, now) => [answersMean(story, now)[isThere ? 'there' : 'notThere']],
  told({ state, late }) {
    if (state === 'sent') return 'The order counts as sent and continues.';
    if (state === 'withdrawn') return 'The order is withdrawn, because its cancellation was requested.';
    return late ? 'The deadline has passed: the order fails now.' : 'The order is sent again now.';
  },
});

const conclude = (isCancelled: boolean): Ask => ({
  act: 'conclude cancel',
  path: 'cancel/conclude',
  body: () => ({ cancelled: isCancelled }) satisfies ConcludeCancel,
  isOffered: (story) => howCancelStands(story)?.canConclude,
  title: (order) => `The restaurant ${isCancelled ? 'cancelled' : 'did not cancel'} ${order}?`,
  action: isCancelled ? 'It cancelled the order' : 'It did not cancel it',
  ...(isCancelled && { isDangerous: true }),
  means: () => [
    isCancelled
      ? 'The member is notified that the order is cancelled. If this is wrong, the kitchen cooks it and nobody collects it.'
      : 'The order continues. The member is notified that it could not be cancelled.',
  ],
  told: () => (isCancelled ? 'The order is cancelled.' : 'The order continues.'),
});

/** The answer is about the change that the page shows. */
const answerChange = (isDone: boolean): Ask => ({
  act: 'answer change',
  path: 'change/answer',
  body: ({ change }) =>
    ({
      answer: isDone ? 'done' : 'too_late',
      ...(change?.since && { since: change.since }),
    }) satisfies AnswerChange,
  isOffered: (story) => howChangeStands(story)?.canAnswer,
  title: (order) => `${order}: ${isDone ? 'the restaurant applied the change' : 'it is too late for the change'}?`,
  action: isDone ? 'Done' : 'Too late',
  means: ({ change }) => [
    change?.changes.join('; ') ?? '',
    'The platform is told your answer. Nothing is changed at the POS.',
  ],
  told: () => (isDone ? 'The change is applied.' : 'It was too late for the change.'),
});

/** The words of the button that cancels. */
export function cancelName(story: ShownOrder): string {
  if (howCancelStands(story) !== undefined) return 'Cancel at the POS again';
  return story.placement.finishedAt === null ? 'Cancel the order' : 'Cancel at the POS';
}

export const ASKS: Readonly<Record<Asking, Ask>> = {
  retry: {
    act: 'retry',
    path: 'retry',
    isOffered: (story) => story.placement.underWay || whatToDo(story)?.canRetry,
    title: (order) => `Retry ${order}?`,
    action: 'Retry now',
    means: retryMeans,
    told: ({ retry }) => (retry === 'due' ? 'The order is retried now.' : 'The order is already being processed.'),
  },
  cancel: {
    act: 'cancel',
    path: 'cancel',
    isOffered: (story) => canBeCancelled(story) || howCancelStands(story)?.canCancel,
    title: (order) => `Cancel ${order}?`,
    action: cancelName,
    isDangerous: true,
    means: (story, _, posCancels) => [cancelMeans(story, posCancels)],
    told: () => 'The order is being cancelled.',
  },
  there: resolve(true),
  'not there': resolve(false),
  cancelled: conclude(true),
  continues: conclude(false),
  done: answerChange(true),
  'too late': answerChange(false),
};

/** What was done since a dialog was opened, in words. Undefined if it may still act. */
export function doneMeanwhile(asking: Asking, before: ShownOrder, story: ShownOrder): string | undefined {
  return doneSince(before, story, [ASKS[asking].act], ASKS[asking].isOffered(story) !== true);
}
