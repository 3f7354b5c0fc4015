import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { now } from '../parts/clock.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Text } from '../parts/form.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import type { Resolved, Retried, ShownLocation, ShownOrder } from '../wire.ts';
import { ASKS, doneMeanwhile, type Asking } from './asks.ts';
import { locationOf, nameOf } from './location-of.ts';
import { throwWithHelp } from './throw-with-help.ts';

type AboutOrderDialog = {
  asking: Asking;
  story: ShownOrder;
  onDone: (message: string) => void;
  onClose: () => void;
};

/** Asks before an action, with its consequences. */
export function OrderDialog({ asking, story, onDone, onClose }: AboutOrderDialog) {
  const [posId, setPosId] = useState('');
  const { path, body, title, action, isDangerous = false, means, told } = ASKS[asking];
  const order = `/orders/${encodeURIComponent(story.serviceOrderId)}`;
  const hasField = asking === 'there';
  // Only a cancellation depends on what the POS can do.
  const at = asking === 'cancel' ? locationOf(story) : null;
  const { value: restaurant, isLoading } = useLoaded(
    async (signal) =>
      at === null ? undefined : ask<ShownLocation>('GET', `/locations/${encodeURIComponent(at)}`, { signal }),
    [at],
  );
  const act = async (): Promise<void> => {
    const sent = { ...(body && { body: body(story, posId.trim()) }) };
    onDone(told(await ask<Partial<Retried & Resolved>>('POST', `${order}/${path}`, sent).catch(throwWithHelp)));
  };
  return (
    <Confirm
      title={title(nameOf(story))}
      action={typeof action === 'string' ? action : action(story)}
      isDangerous={isDangerous}
      isReady={at === null || !isLoading}
      meanwhile={async (signal) => doneMeanwhile(asking, story, await ask<ShownOrder>('GET', order, { signal }))}
      onConfirm={act}
      onClose={onClose}
    >
      {means(story, now.value, restaurant?.knows.cancel).map((sentence) => (
        // A field would open the keyboard of a phone.
        <p key={sentence} {...(hasField && { tabIndex: -1, autofocus: true })}>
          {sentence}
        </p>
      ))}
      {hasField && (
        <Text id="orders-pos-id" label="Its id at the POS, if you know it" isCode value={posId} onWrite={setPosId} />
      )}
    </Confirm>
  );
}
