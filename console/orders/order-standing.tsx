import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask, query } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { now } from '../parts/clock.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Dated } from '../parts/dated.tsx';
import { Problem, Said } from '../parts/said.tsx';
import { WhereToRun } from '../parts/where-to-run.tsx';
import { duration } from '../parts/duration.ts';
import { Time } from '../parts/time.tsx';
import { toLocalTime } from '../parts/local-time.ts';
import { knownLocations, locationName, vendorName } from '../parts/names.ts';
import { pageOf } from '../parts/page-of.ts';
import { WithRole } from '../parts/with-role.tsx';
import { Reveal } from '../parts/reveal.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import { FixSettings } from '../set-up/configuration.tsx';
import type { ListedOrders, ShownLocation, ShownOrder } from '../wire.ts';
import { cancelName, type Asking } from './asks.ts';
import { canBeCancelled, howCancelStands } from './how-cancel-stands.ts';
import { howChangeStands } from './how-change-stands.ts';
import { locationOf } from './location-of.ts';
import { PosWords } from './order-contents.tsx';
import { OrderDialog } from './order-dialog.tsx';
import { conflictHelp, conflictSays, conflictsOf, whatToDo, type Standing } from './what-to-do.ts';
import { Contacts } from '../locations/contact-line.tsx';

type Banner = Omit<Standing, 'canRetry' | 'canResolve' | 'isPaused'>;

/** What is wrong with the order at its POS, and what an operator can do. */
export function OrderStanding({ story, onDone }: { story: ShownOrder; onDone: () => void }) {
  const [asking, setAsking] = useState<Asking>();
  const section = useRef<HTMLElement>(null);
  const standing = whatToDo(story);
  const { placement } = story;
  const isHeld = placement.state === 'held' && standing?.isPaused === undefined;
  const cancel = howCancelStands(story);
  const conflicts = conflictsOf(story).length;
  const at = locationOf(story);
  const telephone = at !== null && <Telephone locationId={at} />;
  const [isStandingBad, isCancelBad] = [standing, cancel].map((each) => each?.tone === 'bad' || each?.tone === 'warn');

  /** Next to the answers to a question, it must not look like one of them. */
  const cancelButton = (isQuiet: boolean) => (
    <WithRole needs="operator" at={at} to="To cancel it">
      <AskButton class={isQuiet ? 'quiet' : ''} onClick={() => setAsking('cancel')}>
        {cancelName(story)}
      </AskButton>
    </WithRole>
  );

  const isDone = useRef(false);
  const done = (message: string): void => {
    isDone.current = true;
    announce(message);
  };
  const close = (): void => {
    setAsking(undefined);
    onDone();
    // The action has removed the pressed button, so the section gets the focus.
    if (isDone.current) section.current?.focus({ preventScroll: true });
    isDone.current = false;
  };
  return (
    <section class="orders-standing" ref={section} tabIndex={-1} aria-label="Current state">
      {standing !== undefined && (
        <Banner
          standing={standing}
          call={
            <>
              {standing.canResolve && <WhereToLook story={story} />}
              {isStandingBad && telephone}
            </>
          }
          more={
            <>
              {isHeld && at !== null && (
                <>
                  <Others at={at} since={story.attempts.at(-1)?.startedAt ?? placement.signalledAt} />
                  <FixSettings
                    locationId={at}
                    said={JSON.stringify([placement.problem, placement.cause])}
                    onSaved={onDone}
                  />
                </>
              )}
              {placement.cause?.code === 'pos_rejected_order' && (
                <Reveal what="the reason" at={at}>
                  {() => <PosWords serviceOrderId={story.serviceOrderId} />}
                </Reveal>
              )}
            </>
          }
        >
          {standing.canRetry && (
            <WithRole needs="operator" at={at} to="To retry it">
              <AskButton class={isHeld || standing.canResolve ? '' : 'primary'} onClick={() => setAsking('retry')}>
                Retry now
              </AskButton>
            </WithRole>
          )}
          {standing.canResolve && (
            <WithRole needs="operator" at={at} to="To answer">
              <span>What did you learn?</span>
              <AskButton onClick={() => setAsking('there')}>It is there</AskButton>
              <AskButton onClick={() => setAsking('not there')}>It is not there</AskButton>
            </WithRole>
          )}
          {standing.isPaused && at !== null && (
            <a class="button" href={pageOf.location(at)}>
              Open the location
            </a>
          )}
          {canBeCancelled(story) && cancelButton(standing.canResolve)}
        </Banner>
      )}
      {cancel !== undefined && (
        <Banner standing={cancel} call={!isStandingBad && isCancelBad && telephone}>
          {cancel.canConclude && (
            <WithRole needs="operator" at={at} to="To enter the answer">
              <span>What did the restaurant say?</span>
              <AskButton onClick={() => setAsking('cancelled')}>It cancelled the order</AskButton>
              <AskButton onClick={() => setAsking('continues')}>It did not cancel it</AskButton>
            </WithRole>
          )}
          {cancel.canCancel && cancelButton(cancel.canConclude)}
        </Banner>
      )}
      <Change story={story} onAsk={setAsking}>
        {!isStandingBad && !isCancelBad && conflicts === 0 && telephone}
      </Change>
      {conflicts > 0 && (
        <Conflicts count={conflicts} story={story}>
          {!isStandingBad && !isCancelBad && telephone}
        </Conflicts>
      )}
      {standing === undefined && canBeCancelled(story) && <div class="buttons">{cancelButton(false)}</div>}
      {asking !== undefined && <OrderDialog asking={asking} story={story} onDone={done} onClose={close} />}
    </section>
  );
}

type AboutChange = { story: ShownOrder; onAsk: (asking: Asking) => void; children: ComponentChildren };

/** What the platform changed, and the buttons for the restaurant's answer. */
function Change({ story, onAsk, children }: AboutChange) {
  const change = howChangeStands(story);
  if (change === undefined) return null;
  return (
    <Banner standing={change} call={change.canAnswer && children}>
      {change.canAnswer && (
        <WithRole needs="operator" at={locationOf(story)} to="To enter the answer">
          <span>What did the restaurant say?</span>
          <AskButton onClick={() => onAsk('done')}>Done</AskButton>
          <AskButton onClick={() => onAsk('too late')}>Too late</AskButton>
        </WithRole>
      )}
    </Banner>
  );
}

function Conflicts({ count, story, children }: { count: number; story: ShownOrder; children: ComponentChildren }) {
  return (
    <div class="apart orders-banner bad">
      <p>
        <span class="orders-sentence">{conflictSays(story)} </span>
        See {count === 1 ? 'the line' : `the ${count} lines`} marked “conflict” below. {conflictHelp(story)}
      </p>
      {children}
    </div>
  );
}

/** The ticket to look for: its code, its POS, and when it may have been made. */
function WhereToLook({ story: { order, attempts, serviceOrderId } }: { story: ShownOrder }) {
  // Any of them may have made it.
  const sentAt = attempts.find(({ call }) => call === 'createOrder')?.startedAt ?? null;
  const zone = knownLocations.value.find(({ locationId }) => locationId === order?.locationId)?.timeZone ?? undefined;
  const [here, there] = [undefined, zone].map((each) => toLocalTime(sentAt ?? '', each).slice(-5));
  return (
    <p class="orders-advice">
      Call the restaurant, or look at the POS{order?.integration && ` (${vendorName(order.integration)})`} of{' '}
      <b>{locationName(order?.locationId ?? '')}</b>
      <Dated before=" for a ticket from" at={sentAt} />
      {sentAt !== null && ` on${here === there ? '' : `, which is ${there} there`}`}. The POS may show the id{' '}
      <code>{serviceOrderId}</code> too.
    </p>
  );
}

type AboutBanner = {
  standing: Banner;
  call: ComponentChildren;
  more?: ComponentChildren;
  children: ComponentChildren;
};

/** @param about.call whom to ask before a button is pressed @param about.more below the buttons @param about.children buttons */
function Banner({ standing, call, more, children }: AboutBanner) {
  const { tone, sentence, problem, isProblemLast, toDo, advice, nextAt, failsAt } = standing;
  return (
    <div class={`apart orders-banner ${tone}`}>
      <div>
        <p class="orders-sentence">{sentence}</p>
        {problem !== null && !isProblemLast && (
          <div>
            <Problem text={problem} />
          </div>
        )}
        {call}
      </div>
      <div class="buttons">{children}</div>
      <div class="orders-more-about">
        {more}
        {toDo.map(
          ({ say, link }) =>
            // A step that ends so is only a command.
            !say.endsWith(':') && (
              <div key={say}>
                <Said text={say} /> {link !== undefined && <a href={link.href}>{link.name}</a>}
              </div>
            ),
        )}
        {toDo.some(({ run }) => run !== undefined) && (
          <details>
            <summary>By command line</summary>
            {toDo.map(
              ({ say, run }) =>
                run !== undefined && (
                  <div key={say}>
                    <Said text={say} />
                    <Copyable text={run} label={`the command: ${say}`} />
                  </div>
                ),
            )}
            <WhereToRun />
          </details>
        )}
        <p class="orders-advice">
          {advice} {nextAt !== undefined && <NextTry at={nextAt} />}{' '}
          {failsAt !== undefined && <Deadline at={failsAt} />}
        </p>
        {problem !== null && isProblemLast && (
          <div class="orders-about">
            <Problem text={problem} />
          </div>
        )}
      </div>
    </div>
  );
}

/** Whether the settings work for other orders. */
function Others({ at, since }: { at: string; since: string }) {
  const { value } = useLoaded(
    (signal) => ask<ListedOrders>('GET', `/orders${query({ location: at, state: 'sent', limit: 20 })}`, { signal }),
    [at],
  );
  // Sent since then: they may have been signalled before.
  const arrive = value?.orders.some(
    ({ finishedAt }) => finishedAt !== null && Date.parse(finishedAt) > Date.parse(since),
  );
  if (arrive !== true) return null;
  return (
    <p>Other orders of this location have reached its POS since then. Retry this one before you change the settings.</p>
  );
}

function NextTry({ at }: { at: string }) {
  const ms = Date.parse(at) - now.value;
  return (
    <>
      Next try <Time at={at} />
      {ms > 1_000 ? ` (in ${duration(ms)})` : ' (at any moment)'}.
    </>
  );
}

function Deadline({ at }: { at: string }) {
  const ms = Date.parse(at) - now.value;
  if (ms < 0) return <>The deadline has passed: the order is not sent any more, and fails.</>;
  return (
    <>
      If it is not at the POS by <Time at={at} /> (in {duration(ms)}), it fails, and the member is notified.
    </>
  );
}

/** Whom to call at the restaurant, and its page at the POS. */
function Telephone({ locationId }: { locationId: string }) {
  const path = `/locations/${encodeURIComponent(locationId)}`;
  const { value, problem } = useLoaded((signal) => ask<ShownLocation>('GET', path, { signal }), [path]);
  if (value === undefined) return problem === undefined ? null : <p class="faint">{problem.message}</p>;
  const { address, backOfficeUrl } = value;
  return (
    <div class="orders-call">
      <Contacts {...value} />
      {address !== null && <div>{address}</div>}
      {backOfficeUrl !== null && (
        <a href={backOfficeUrl} target="_blank" rel="noreferrer">
          Open its POS
        </a>
      )}
    </div>
  );
}
