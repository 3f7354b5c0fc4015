import { printable } from '../../src/observe/terminal-text.ts';
import { words } from '../parts/tones.ts';
import { Details, Said } from '../parts/said.tsx';
import { Time } from '../parts/time.tsx';
import type { ShownWebhook } from '../wire.ts';
import { explainDrop, explainRefusal } from './explain.ts';
import { EventOrder } from './run-table.tsx';

/** The events that a replay would read with the current settings and provider. */
export function Today({ shown, isRevealed }: { shown: ShownWebhook; isRevealed: boolean }) {
  const unread = 'events' in shown.today ? (shown.today.unread ?? []) : [];
  return (
    <>
      <Contents shown={shown} isRevealed={isRevealed} />
      {unread.length > 0 && (
        <p>
          These fields could not be read, and the rest counts: <code>{unread.map(printable).join(', ')}</code>.
        </p>
      )}
    </>
  );
}

function Contents({ shown, isRevealed }: { shown: ShownWebhook; isRevealed: boolean }) {
  const { today } = shown;
  if ('refused' in today)
    return (
      <p>
        <Said text={`${explainRefusal(today, shown).what}.`} />
      </p>
    );
  if ('dropped' in today) {
    return (
      <>
        <p>It would be dropped again. {explainDrop({ cause: today.cause, reason: today.dropped }, shown).what}.</p>
        {today.dropped !== shown.reason && <Details>{today.dropped}</Details>}
      </>
    );
  }
  if (today.pausedUntil === null) return <p>The POS reports that it takes orders.</p>;
  if (today.pausedUntil !== undefined) {
    return (
      <p>
        The POS reports that it takes no orders. They wait until <Time at={today.pausedUntil} />.
      </p>
    );
  }
  if (today.events.length === 0) {
    return <p>It contains no order status. A replay changes nothing.</p>;
  }
  return (
    <ol class="webhooks-events">
      {today.events.map((event, nth) => (
        // Two events may be equal; only their position distinguishes them.
        // oxlint-disable-next-line react/no-array-index-key
        <li key={nth}>
          <dl>
            <dt>Status</dt>
            <dd>
              <b>{words(event.status)}</b>{' '}
              <span class="faint">
                (POS status <code>{printable(event.nativeStatus)}</code>)
              </span>
            </dd>
            <dt>Order</dt>
            <dd>
              <EventOrder {...event} />
            </dd>
            {event.serviceOrderId !== undefined && event.providerOrderId !== undefined && (
              <>
                <dt>POS id</dt>
                <dd class="mono">{printable(event.providerOrderId)}</dd>
              </>
            )}
            {event.occurredAt !== undefined && (
              <>
                <dt>Happened</dt>
                <dd>
                  <Time at={event.occurredAt} />
                </dd>
              </>
            )}
            {isRevealed && (
              <>
                <dt>Reason</dt>
                <dd>{event.reason ?? <span class="faint">none</span>}</dd>
              </>
            )}
          </dl>
        </li>
      ))}
    </ol>
  );
}
