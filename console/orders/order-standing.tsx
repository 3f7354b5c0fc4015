import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { now } from '../parts/clock.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Copyable } from '../parts/copyable.tsx';
import { WhereToRun } from '../parts/where-to-run.tsx';
import { duration } from '../parts/duration.ts';
import { Time } from '../parts/time.tsx';
import { WithRole } from '../parts/with-role.tsx';
import type { Retried, ShownOrder } from '../wire.ts';
import { CancelDialog, ConcludeDialog } from './cancel-dialogs.tsx';
import { canBeCancelled, howCancelStands } from './how-cancel-stands.ts';
import { locationOf } from './location-of.ts';
import { ResolveDialog } from './resolve-dialog.tsx';
import { throwWithHelp } from './throw-with-help.ts';
import { conflictsOf, retryMeans, whatToDo, type Standing } from './what-to-do.ts';

type Banner = Omit<Standing, 'canRetry' | 'canResolve'>;

/** What is wrong with the order at its POS, and what an operator can do. */
export function OrderStanding({ story, onDone }: { story: ShownOrder; onDone: () => void }) {
  const [asking, setAsking] = useState<'retry' | 'resolve' | 'cancel' | 'conclude'>();
  const section = useRef<HTMLElement>(null);
  const standing = whatToDo(story);
  const cancel = howCancelStands(story);
  const conflicts = conflictsOf(story);
  const at = locationOf(story);

  const isDone = useRef(false);
  const done = (message: string): void => {
    isDone.current = true;
    announce(message);
    onDone();
  };
  const close = (): void => {
    setAsking(undefined);
    // The action has removed the pressed button, so the section gets the focus.
    if (isDone.current) section.current?.focus({ preventScroll: true });
    isDone.current = false;
  };
  return (
    <section class="orders-standing" ref={section} tabIndex={-1} aria-label="Current state">
      {standing !== undefined && (
        <Banner standing={standing}>
          {standing.canRetry && (
            <WithRole needs="operator" at={at} to="To retry it">
              <button type="button" onClick={() => setAsking('retry')}>
                Retry now
              </button>
            </WithRole>
          )}
          {standing.canResolve && (
            <WithRole needs="operator" at={at} to="To enter what you saw">
              <button type="button" class="primary" onClick={() => setAsking('resolve')}>
                Enter what you saw
              </button>
            </WithRole>
          )}
        </Banner>
      )}
      {cancel !== undefined && (
        <Banner standing={cancel}>
          {cancel.canCancel && <CancelButton at={at} onPress={() => setAsking('cancel')} />}
          {cancel.canConclude && (
            <WithRole needs="operator" at={at} to="To enter the answer">
              <button type="button" class="primary" onClick={() => setAsking('conclude')}>
                Enter the answer
              </button>
            </WithRole>
          )}
        </Banner>
      )}
      {conflicts > 0 && (
        <div class="orders-banner bad">
          <p>
            <span class="orders-sentence">Check this order: </span>
            {conflicts === 1 ? 'one event contradicts' : `${conflicts} events contradict`} what we know about it. See
            the mark “conflict” below.
          </p>
        </div>
      )}
      {canBeCancelled(story) && (
        <div class="buttons">
          <CancelButton at={at} onPress={() => setAsking('cancel')} />
        </div>
      )}
      {asking === 'cancel' && <CancelDialog story={story} onDone={done} onClose={close} />}
      {asking === 'conclude' && <ConcludeDialog story={story} onDone={done} onClose={close} />}
      {asking === 'retry' && <RetryDialog story={story} onDone={done} onClose={close} />}
      {asking === 'resolve' && <ResolveDialog story={story} onDone={done} onClose={close} />}
    </section>
  );
}

function Banner({ standing, children }: { standing: Banner; children: ComponentChildren }) {
  const { tone, sentence, problem, toDo, advice, nextAt, failsAt } = standing;
  return (
    <div class={`orders-banner ${tone}`}>
      <div>
        <p class="orders-sentence">{sentence}</p>
        {problem !== null && <p>{problem}</p>}
        {toDo.map(({ say, run }) => (
          <div key={say}>
            {say}
            {run !== undefined && <Copyable text={run} label={`the command: ${say}`} />}
          </div>
        ))}
        {toDo.some(({ run }) => run !== undefined) && <WhereToRun />}
        <p class="orders-advice">
          {advice} {nextAt !== undefined && <NextTry at={nextAt} />}{' '}
          {failsAt !== undefined && <Deadline at={failsAt} />}
        </p>
      </div>
      <div class="buttons">{children}</div>
    </div>
  );
}

function CancelButton({ at, onPress }: { at: string | null; onPress: () => void }) {
  return (
    <WithRole needs="operator" at={at} to="To cancel it">
      <button type="button" onClick={onPress}>
        Cancel at the POS
      </button>
    </WithRole>
  );
}

function NextTry({ at }: { at: string }) {
  const ms = Date.parse(at) - now.value;
  return (
    <>
      Next try at <Time at={at} />
      {ms > 1_000 ? `, in ${duration(ms)}` : ', at any moment'}.
    </>
  );
}

function Deadline({ at }: { at: string }) {
  const ms = Date.parse(at) - now.value;
  if (ms < 0) return <>The deadline has passed: the order is not sent any more, and fails.</>;
  return (
    <>
      If the POS does not have it by <Time at={at} /> (in {duration(ms)}), the order fails, which is final.
    </>
  );
}

function RetryDialog({
  story,
  onDone,
  onClose,
}: {
  story: ShownOrder;
  onDone: (message: string) => void;
  onClose: () => void;
}) {
  const retry = async (): Promise<void> => {
    const path = `/orders/${encodeURIComponent(story.serviceOrderId)}/retry`;
    const { retry } = await ask<Retried>('POST', path).catch(throwWithHelp);
    onDone(retry === 'due' ? 'The order is retried now.' : 'The order is already being processed.');
  };
  return (
    <Confirm title="Retry this order now?" action="Retry it now" onConfirm={retry} onClose={onClose}>
      {retryMeans(story, now.value).map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </Confirm>
  );
}
