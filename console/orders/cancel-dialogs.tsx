import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { Confirm } from '../parts/confirm.tsx';
import type { ConcludeCancel, ShownOrder } from '../wire.ts';
import { Answer } from './resolve-dialog.tsx';
import { cancelMeans } from './how-cancel-stands.ts';
import { throwWithHelp } from './throw-with-help.ts';

type About = { story: ShownOrder; onDone: (message: string) => void; onClose: () => void };

export function CancelDialog({ story, onDone, onClose }: About) {
  const cancel = async (): Promise<void> => {
    await ask('POST', `/orders/${encodeURIComponent(story.serviceOrderId)}/cancel`).catch(throwWithHelp);
    onDone('The order is being cancelled.');
  };
  return (
    <Confirm title="Cancel this order?" action="Cancel the order" isDangerous onConfirm={cancel} onClose={onClose}>
      <p>{cancelMeans(story)}</p>
    </Confirm>
  );
}

/** Records the answer that the restaurant gave by phone. */
export function ConcludeDialog({ story, onDone, onClose }: About) {
  const [isCancelled, setCancelled] = useState<boolean>();
  const conclude = async (): Promise<void> => {
    const body: ConcludeCancel = { cancelled: isCancelled === true };
    const path = `/orders/${encodeURIComponent(story.serviceOrderId)}/cancel/conclude`;
    await ask('POST', path, { body }).catch(throwWithHelp);
    onDone(isCancelled ? 'The order is cancelled.' : 'The order continues.');
  };
  return (
    <Confirm
      title="What did the restaurant say?"
      action={isCancelled === undefined ? 'Choose one' : isCancelled ? 'It is cancelled' : 'It continues'}
      isDangerous={isCancelled === true}
      isReady={isCancelled !== undefined}
      onConfirm={conclude}
      onClose={onClose}
    >
      <fieldset class="orders-answers">
        <legend class="unseen">Its answer</legend>
        <Answer
          name="It cancelled the order"
          means="The member is notified that the order is cancelled. If this is wrong, the kitchen cooks it and nobody collects it."
          isChosen={isCancelled === true}
          onChoose={() => setCancelled(true)}
        />
        <Answer
          name="It did not cancel the order"
          means="The order continues. The member is notified that it could not be cancelled."
          isChosen={isCancelled === false}
          onChoose={() => setCancelled(false)}
        />
      </fieldset>
    </Confirm>
  );
}
