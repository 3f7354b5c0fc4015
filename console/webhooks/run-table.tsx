import { printable } from '../../src/observe/terminal-text.ts';
import { useState } from 'preact/hooks';
import { Badge } from '../parts/badge.tsx';
import { locationName } from '../parts/names.ts';
import { OrderName } from '../parts/order-name.tsx';
import { Time } from '../parts/time.tsx';
import { OUTCOME_TONES, words } from '../parts/tones.ts';
import type { Replayed, WebhookOutcome } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { explainDrop, explainRefusal } from './explain.ts';
import type { ReplayRun } from './replay-in-batches.ts';
import { Heads } from '../parts/heads.tsx';

/** Rows shown at first. */
const SHOWN = 10;

/** The count of each outcome, and the location if it is the same for all. */
export function OutcomeCounts({ run, isDry }: { run: ReplayRun; isDry: boolean }) {
  const counts = Object.entries(run.outcomes) as [WebhookOutcome, number][];
  const refused = run.refused.length;
  const [at, ...others] = locationsOf(run);
  return (
    <ul class="row webhooks-counts" aria-label="How many of each outcome">
      {counts.map(([outcome, count]) => (
        <li key={outcome}>
          <b>{count}</b> <Outcome outcome={outcome} isDry={isDry} />
        </li>
      ))}
      {refused > 0 && (
        <li>
          <b>{refused}</b> <Badge tone="warn">cannot be replayed</Badge>
        </li>
      )}
      {at !== undefined && others.length === 0 && <li title={at}>at {locationName(at)}</li>}
    </ul>
  );
}

function locationsOf({ refused, replayed }: ReplayRun): string[] {
  return [...new Set([...refused, ...replayed].map(({ locationId }) => locationId))];
}

/** An outcome. One that is only expected is not green. */
function Outcome({ outcome, isDry }: { outcome: WebhookOutcome; isDry: boolean }) {
  const tone = OUTCOME_TONES[outcome];
  return <Badge tone={isDry && tone === 'good' ? 'plain' : tone}>{isDry ? `would be ${outcome}` : outcome}</Badge>;
}

/** The result of each webhook of a run, real or predicted. What is the same for all is in OutcomeCounts. */
export function RunTable({ run, isDry }: { run: ReplayRun; isDry: boolean }) {
  const [isAll, setAll] = useState(false);
  const count = run.refused.length + run.replayed.length;
  if (count === 0) return null;
  const limit = isAll ? count : SHOWN;
  // Refused webhooks need a person, so they come first.
  const refused = run.refused.slice(0, limit);
  const replayed = run.replayed.slice(0, limit - refused.length);
  const hasPlaces = locationsOf(run).length > 1;
  const outcome = isDry ? 'Expected outcome' : 'Outcome';
  const hasOutcomes = Object.keys(run.outcomes).length + Math.min(run.refused.length, 1) > 1;
  return (
    <>
      <div class="scroll-x webhooks-scroll">
        <table class="lines">
          <Heads of={['Webhook', hasPlaces && 'Location', hasOutcomes && outcome, 'Contents']} />
          <tbody>
            {refused.map((about) => (
              <tr key={about.webhookId}>
                <th scope="row">
                  <WebhookLink webhookId={about.webhookId} at={about.receivedAt} />
                </th>
                {hasPlaces && <td title={about.locationId}>{locationName(about.locationId)}</td>}
                {hasOutcomes && (
                  <td>
                    <Badge tone="warn">cannot be replayed</Badge>
                  </td>
                )}
                <td>{explainRefusal(about, about).what}</td>
              </tr>
            ))}
            {replayed.map((each) => (
              <tr key={each.replayOf}>
                <th scope="row">
                  <WebhookLink webhookId={each.webhookId ?? each.replayOf} at={each.receivedAt} />
                </th>
                {hasPlaces && <td title={each.locationId}>{locationName(each.locationId)}</td>}
                {hasOutcomes && (
                  <td>
                    <Outcome outcome={each.outcome} isDry={isDry} />
                  </td>
                )}
                <td>
                  {each.outcome === 'dropped' ? (
                    explainDrop(each, { ...each, webhookId: each.replayOf }).what
                  ) : (
                    <Events events={each.events} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {count > limit && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {count}
        </button>
      )}
    </>
  );
}

/** A link to a webhook, named by its time, which a process of the previous version does not send. */
export function WebhookLink({ webhookId, at }: { webhookId: string; at: string | undefined }) {
  return <a href={pageOf.webhook(webhookId)}>{at === undefined ? 'a webhook' : <Time at={at} />}</a>;
}

function Events({ events }: { events: Replayed['events'] }) {
  if (events.length === 0) return <span class="faint">no order status</span>;
  return (
    <>
      {events.map((event, nth) => (
        // Two events may be equal; only their position distinguishes them.
        // oxlint-disable-next-line react/no-array-index-key
        <span key={nth} class="webhooks-said">
          {words(event.status)}: <EventOrder {...event} />
          {event.conflict && <Badge tone="bad">conflict</Badge>}
        </span>
      ))}
    </>
  );
}

/** The order of an event: a link, or the POS id. */
export function EventOrder({
  serviceOrderId,
  callOutCode,
  providerOrderId,
}: {
  serviceOrderId?: string | null | undefined;
  callOutCode: string | null;
  providerOrderId?: string | null | undefined;
}) {
  return (
    <span class="webhooks-id">
      {typeof serviceOrderId === 'string' ? (
        <a href={pageOf.order(serviceOrderId)}>
          <OrderName id={serviceOrderId} code={callOutCode} />
        </a>
      ) : (
        `POS ${printable(providerOrderId ?? '?')}`
      )}
    </span>
  );
}
