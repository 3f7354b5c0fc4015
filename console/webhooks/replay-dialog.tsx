import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { Loading } from '../parts/loading.tsx';
import { pageOf } from '../parts/page-of.ts';
import { OUTCOME_TONES, words } from '../parts/tones.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { Replayed } from '../wire.ts';
import './webhooks.css';
import { explainDrop } from './explain.ts';
import { mayChange, outcomeMeaning } from './outcome-meaning.ts';
import { EventOrder } from './run-table.tsx';
import { Heads } from '../parts/heads.tsx';

type AboutReplayDialog = { webhookId: string; onClose: () => void; onReplayed: (replayed: Replayed) => void };

/**
 * Replays one webhook after a dry run that shows the result of each event.
 * @param onReplayed called after the replay. The dialog shows the result until it is closed.
 */
export function ReplayDialog({ webhookId, onClose, onReplayed }: AboutReplayDialog) {
  const replay = (dryRun: boolean, signal?: AbortSignal): Promise<Replayed> =>
    ask('POST', `/webhooks/${webhookId}/replay`, { body: { dryRun }, signal });
  const dry = useLoaded((signal) => replay(true, signal), [webhookId]);

  const confirm = async () => {
    const replayed = await replay(false);
    onReplayed(replayed);
    announce(`Replayed: ${replayed.outcome}`);
    return (
      <>
        <p>
          The webhook was replayed
          {replayed.webhookId !== null && (
            <>
              {' '}
              as <a href={pageOf.webhook(replayed.webhookId)}>a new webhook</a>
            </>
          )}
          .
        </p>
        <Result replayed={replayed} />
      </>
    );
  };

  return (
    <Confirm
      title="Replay this webhook"
      action="Replay the webhook"
      isReady={dry.value !== undefined && dry.problem === undefined && mayChange(dry.value)}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p class="faint">
        A replay applies it again, as a new webhook, with the current settings. This is what would happen:
      </p>
      <Loading loaded={dry}>
        {(replayed) => (
          <>
            <Result replayed={replayed} />
            {!mayChange(replayed) && <p>A replay would change nothing now. Fix the cause first.</p>}
          </>
        )}
      </Loading>
    </Confirm>
  );
}

function Result({ replayed }: { replayed: Replayed }) {
  const { outcome, reason, events, redriven } = replayed;
  const about = { ...replayed, webhookId: replayed.replayOf };
  return (
    <div class="webhooks-became">
      <p>
        <Badge tone={OUTCOME_TONES[outcome]}>{outcome}</Badge>{' '}
        {outcome === 'dropped' ? `${explainDrop(replayed, about).what}.` : outcomeMeaning(outcome, reason)}
      </p>
      {events.length > 0 && (
        <div class="scroll-x">
          <table>
            <Heads of={['Order', 'Status', 'Outcome']} />
            <tbody>
              {events.map((event, nth) => (
                // Two events may be equal; only their position distinguishes them.
                // oxlint-disable-next-line react/no-array-index-key
                <tr key={nth}>
                  <th scope="row">
                    <EventOrder {...event} />
                  </th>
                  <td>{words(event.status)}</td>
                  <td>
                    <Badge tone={OUTCOME_TONES[event.outcome]}>{event.outcome}</Badge>{' '}
                    {event.conflict && <Badge tone="bad">conflict: call the restaurant</Badge>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {redriven > 0 && (
        <p>
          {redriven} {redriven === 1 ? 'event' : 'events'} of other webhooks waited for the POS id in this webhook, and{' '}
          {redriven === 1 ? 'was' : 'were'} applied.
        </p>
      )}
    </div>
  );
}
