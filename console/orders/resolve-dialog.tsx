import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { now } from '../parts/clock.ts';
import { locationName, vendorName } from '../parts/names.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Text } from '../parts/form.tsx';
import { Time } from '../parts/time.tsx';
import type { Resolve, Resolved, ShownOrder } from '../wire.ts';
import type { AboutDialog } from './cancel-dialogs.tsx';
import { nameOf } from './location-of.ts';
import { throwWithHelp } from './throw-with-help.ts';
import { answersMean } from './what-to-do.ts';

/** Records whether the ticket of an order in doubt is at the POS, after the consequence of the answer. */
export function ResolveDialog({ story, isThere, onDone, ...about }: AboutDialog & { isThere: boolean }) {
  const [posId, setPosId] = useState('');
  const mean = answersMean(story, now.value);

  const resolve = async (): Promise<void> => {
    const body: Resolve = isThere
      ? { there: true, ...(posId.trim() !== '' && { providerOrderId: posId.trim() }) }
      : { there: false };
    const path = `/orders/${encodeURIComponent(story.serviceOrderId)}/resolve`;
    const { state, late } = await ask<Resolved>('POST', path, { body }).catch(throwWithHelp);
    if (state === 'sent') onDone('The order counts as sent and continues.');
    else if (state === 'withdrawn') onDone('The order is withdrawn, because its cancellation was requested.');
    else onDone(late ? 'The deadline has passed: the order fails now.' : 'The order is sent again now.');
  };
  return (
    <Confirm
      title={`${nameOf(story)}: it is ${isThere ? '' : 'not '}at the POS?`}
      action={isThere ? 'It is there' : 'It is not there'}
      isDangerous={!isThere}
      onConfirm={resolve}
      {...about}
    >
      {/* The field would open the keyboard of a phone. */}
      <p tabIndex={-1} autofocus>
        {isThere ? mean.there : mean.notThere}
      </p>
      {isThere && (
        <Text id="orders-pos-id" label="Its id at the POS, if you know it" isCode value={posId} onWrite={setPosId} />
      )}
    </Confirm>
  );
}

/** The ticket to look for: its code, its POS, and when it may have been made. */
export function WhereToLook({ story: { order, attempts, serviceOrderId } }: { story: ShownOrder }) {
  const sent = attempts.findLast(({ call }) => call === 'createOrder');
  return (
    <p class="orders-advice">
      Call the restaurant, or look at the POS{order?.integration && ` (${vendorName(order.integration)})`} of{' '}
      <b>{locationName(order?.locationId ?? '')}</b>
      {sent !== undefined && (
        <>
          {' '}
          for a ticket from <Time at={sent.startedAt} /> on
        </>
      )}
      . The POS may show the id <code>{serviceOrderId}</code> too.
    </p>
  );
}
