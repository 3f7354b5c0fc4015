import { printable } from '../../src/observe/terminal-text.ts';
import { useState } from 'preact/hooks';
import { Badge } from '../parts/badge.tsx';
import { locationName } from '../parts/names.ts';
import { ShortId } from '../parts/short-id.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import type { Replayed, WebhookOutcome } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { explainDrop, explainRefusal } from './explain.ts';
import type { ReplayRun } from './replay-in-batches.ts';

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
  const hasOutcomes = Object.keys(run.outcomes).length + Math.min(run.refused.length, 1) > 1;
  return (
    <>
      <div class="scroll-x webhooks-scroll">
        <table class="lines">
          <thead>
            <tr>
              <th scope="col">Webhook</th>
              {hasPlaces && <th scope="col">Location</th>}
              {hasOutcomes && <th scope="col">{isDry ? 'Expected outcome' : 'Outcome'}</th>}
              <th scope="col">Contents</th>
            </tr>
          </thead>
          <tbody>
            {refused.map((about) => (
              <tr key={about.webhookId}>
                <th scope="row">
                  <WebhookLink webhookId={about.webhookId} />
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
                  <WebhookLink webhookId={each.webhookId ?? each.replayOf} />
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

/** A link that shows the end of the id. The beginning is a time, so it is almost the same for all webhooks. */
export function WebhookLink({ webhookId }: { webhookId: string }) {
  return (
    <a class="mono" href={pageOf.webhook(webhookId)} title={webhookId}>
      …{webhookId.slice(-12)}
    </a>
  );
}

function Events({ events }: { events: Replayed['events'] }) {
  if (events.length === 0) return <span class="faint">no order status</span>;
  return (
    <>
      {events.map(({ status, serviceOrderId, providerOrderId, conflict }, nth) => (
        // Two events may be equal; only their position distinguishes them.
        // oxlint-disable-next-line react/no-array-index-key
        <span key={nth} class="webhooks-said">
          {status.replaceAll('_', ' ')}:{' '}
          <EventOrder serviceOrderId={serviceOrderId} providerOrderId={providerOrderId} />
          {conflict && <Badge tone="bad">conflict</Badge>}
        </span>
      ))}
    </>
  );
}

/** The order of an event: a link, or the POS id. */
export function EventOrder({
  serviceOrderId,
  providerOrderId,
}: {
  serviceOrderId: string | null | undefined;
  providerOrderId: string | null | undefined;
}) {
  return (
    <span class="webhooks-id">
      {typeof serviceOrderId === 'string' ? (
        <a href={pageOf.order(serviceOrderId)}>
          <ShortId id={serviceOrderId} />
        </a>
      ) : (
        `POS ${printable(providerOrderId ?? '?')}`
      )}
    </span>
  );
}
