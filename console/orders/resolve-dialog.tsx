import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { now } from '../parts/clock.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Time } from '../parts/time.tsx';
import type { Resolve, Resolved, ShownOrder } from '../wire.ts';
import { throwWithHelp } from './throw-with-help.ts';
import { answersMean } from './what-to-do.ts';

/** Records whether the ticket of an order in doubt is at the POS. */
export function ResolveDialog({
  story,
  onDone,
  onClose,
}: {
  story: ShownOrder;
  onDone: (message: string) => void;
  onClose: () => void;
}) {
  const [isThere, setThere] = useState<boolean>();
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
      title={`Is ${story.order?.callOutCode ?? 'the order'} at the POS?`}
      action={isThere === undefined ? 'Choose one' : isThere ? 'It is there' : 'It is not there'}
      isDangerous={isThere === false}
      isReady={isThere !== undefined}
      onConfirm={resolve}
      onClose={onClose}
    >
      <WhereToLook story={story} />
      <fieldset class="orders-answers">
        <legend class="orders-say">Say what you saw</legend>
        <Answer
          name="The ticket is there"
          means={mean.there}
          isChosen={isThere === true}
          onChoose={() => setThere(true)}
        >
          {isThere && (
            <div class="orders-pos-id">
              <label htmlFor="orders-pos-id">Its id at the POS, if you know it</label>
              <input
                id="orders-pos-id"
                class="mono"
                value={posId}
                autocomplete="off"
                spellcheck={false}
                maxLength={255}
                onInput={(event) => setPosId(event.currentTarget.value)}
              />
            </div>
          )}
        </Answer>
        <Answer
          name="The ticket is not there"
          means={mean.notThere}
          isChosen={isThere === false}
          onChoose={() => setThere(false)}
        />
      </fieldset>
    </Confirm>
  );
}

/** The ticket to look for: its code, its POS, and when it may have been made. */
function WhereToLook({ story: { order, attempts, serviceOrderId } }: { story: ShownOrder }) {
  const sent = attempts.findLast(({ call }) => call === 'createOrder');
  return (
    <p>
      Look at the POS{order?.integration && ` (${order.integration})`} of <b>{order?.locationId}</b>
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

/** An answer with its consequence. */
export function Answer({
  name,
  means,
  isChosen,
  onChoose,
  children,
}: {
  name: string;
  means: string;
  isChosen: boolean;
  onChoose: () => void;
  children?: ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="orders-answer">
      <input
        id={id}
        type="radio"
        name="answer"
        checked={isChosen}
        aria-describedby={`${id}-means`}
        onChange={onChoose}
      />
      <div>
        <label htmlFor={id}>{name}</label>
        <p id={`${id}-means`}>{means}</p>
        {children}
      </div>
    </div>
  );
}
