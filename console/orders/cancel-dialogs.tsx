import { ask } from '../api.ts';
import { Confirm, type Meanwhile } from '../parts/confirm.tsx';
import type { AnswerChange, ConcludeCancel, ShownOrder } from '../wire.ts';
import { cancelMeans } from './how-cancel-stands.ts';
import { nameOf } from './location-of.ts';
import { throwWithHelp } from './throw-with-help.ts';

export type AboutDialog = {
  story: ShownOrder;
  onDone: (message: string) => void;
  onClose: () => void;
  meanwhile: Meanwhile;
};

/** @param about.name the words of the button that opened it */
export function CancelDialog({ story, name, onDone, ...about }: AboutDialog & { name: string }) {
  const cancel = async (): Promise<void> => {
    await ask('POST', `/orders/${encodeURIComponent(story.serviceOrderId)}/cancel`).catch(throwWithHelp);
    onDone('The order is being cancelled.');
  };
  return (
    <Confirm title={`Cancel ${nameOf(story)}?`} action={name} isDangerous onConfirm={cancel} {...about}>
      <p>{cancelMeans(story)}</p>
    </Confirm>
  );
}

/** Records the answer that the restaurant gave by phone, after its consequence. */
export function ConcludeDialog({ story, isCancelled, onDone, ...about }: AboutDialog & { isCancelled: boolean }) {
  const conclude = async (): Promise<void> => {
    const body: ConcludeCancel = { cancelled: isCancelled };
    const path = `/orders/${encodeURIComponent(story.serviceOrderId)}/cancel/conclude`;
    await ask('POST', path, { body }).catch(throwWithHelp);
    onDone(isCancelled ? 'The order is cancelled.' : 'The order continues.');
  };
  return (
    <Confirm
      title={`The restaurant ${isCancelled ? 'cancelled' : 'did not cancel'} ${nameOf(story)}?`}
      action={isCancelled ? 'It cancelled the order' : 'It did not cancel it'}
      isDangerous={isCancelled}
      onConfirm={conclude}
      {...about}
    >
      <p>
        {isCancelled
          ? 'The member is notified that the order is cancelled. If this is wrong, the kitchen cooks it and nobody collects it.'
          : 'The order continues. The member is notified that it could not be cancelled.'}
      </p>
    </Confirm>
  );
}

/** Records whether the restaurant applied the change that the page shows. */
export function AnswerChangeDialog({ story, isDone, onDone, ...about }: AboutDialog & { isDone: boolean }) {
  const { since = null, changes = [] } = story.change ?? {};
  const answer = async (): Promise<void> => {
    const body: AnswerChange = { answer: isDone ? 'done' : 'too_late', ...(since !== null && { since }) };
    const path = `/orders/${encodeURIComponent(story.serviceOrderId)}/change/answer`;
    await ask('POST', path, { body }).catch(throwWithHelp);
    onDone(isDone ? 'The change is applied.' : 'It was too late for the change.');
  };
  return (
    <Confirm
      title={`${nameOf(story)}: ${isDone ? 'the restaurant applied the change' : 'it is too late for the change'}?`}
      action={isDone ? 'Done' : 'Too late'}
      onConfirm={answer}
      {...about}
    >
      <p>{changes.join('; ')}</p>
      <p>The platform is told your answer. Nothing is changed at the POS.</p>
    </Confirm>
  );
}
