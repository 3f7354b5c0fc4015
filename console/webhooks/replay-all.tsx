import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { may } from '../may.ts';
import { Confirm } from '../parts/confirm.tsx';
import type { ReplayMany, ReplayedMany } from '../wire.ts';
import { replayOf, type WebhookFilter } from './webhook-filter.ts';
import { NOTHING_YET, replayInBatches, type ReplayRun } from './replay-in-batches.ts';
import { OutcomeCounts, RunTable } from './run-table.tsx';

/** The service counts remaining webhooks up to this number. */
const COUNTED = 10_000;

type Stage = {
  is: 'trying' | 'tried' | 'replaying' | 'replayed';
  run: ReplayRun;
  /** True if it stopped before its end. */
  isCut?: boolean;
  /** The error that stopped it. */
  problem?: string;
};

/** Replays all matching webhooks: a dry run, a confirmation, then the replay of the same webhooks. */
export function ReplayAll({ filter, onReplayed }: { filter: WebhookFilter; onReplayed: () => void }) {
  const [stage, setStage] = useState<Stage>();
  const [isAsked, setChosen] = useState(false);
  const underWay = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => underWay.current?.abort(), []);
  const heading = useRef<HTMLHeadingElement>(null);
  const begin = useRef<HTMLButtonElement>(null);
  const stageBefore = useRef<Stage['is'] | undefined>(undefined);
  // The pressed button was removed, so another element gets the focus.
  useEffect(() => {
    if (stage !== undefined) heading.current?.focus({ preventScroll: true });
    else if (stageBefore.current !== undefined) begin.current?.focus();
    stageBefore.current = stage?.is;
  }, [stage?.is]);
  const chosen = may('operator', filter.location || { anywhere: true })
    ? replayOf(filter)
    : { why: 'To replay them, you need the role operator here.' };

  if ('why' in chosen) {
    return (
      <p class="webhooks-all">
        <button type="button" disabled>
          Replay all that match …
        </button>
        <span class="faint">{chosen.why}</span>
      </p>
    );
  }

  const go = async (isDry: boolean, from: ReplayRun): Promise<void> => {
    const stop = new AbortController();
    underWay.current = stop;
    const [during, after] = isDry ? (['trying', 'tried'] as const) : (['replaying', 'replayed'] as const);
    const send = (body: ReplayMany): Promise<ReplayedMany> =>
      ask('POST', '/webhooks/replay', { body, signal: stop.signal });
    let run = from;
    setStage({ is: during, run });
    try {
      for await (run of replayInBatches(send, { ...chosen, dryRun: isDry }, from)) {
        if (stop.signal.aborted) break;
        setStage({ is: during, run });
      }
      setStage({ is: after, run, isCut: run.next !== null });
      announce(`${isDry ? 'Dry run' : 'Replay'} ended: ${countOf(run)} webhooks`);
    } catch (error) {
      const why = stop.signal.aborted ? {} : { problem: (error as Error).message };
      setStage({ is: after, run, isCut: true, ...why });
    }
    if (!isDry) onReplayed();
  };

  if (stage === undefined) {
    return (
      <p class="webhooks-all">
        <button ref={begin} type="button" onClick={() => void go(true, NOTHING_YET)}>
          Replay all that match …
        </button>
        <span class="faint">A dry run first shows the result for each webhook, and changes nothing.</span>
      </p>
    );
  }

  const { is, run, isCut = false, problem } = stage;
  const isUnderWay = is === 'trying' || is === 'replaying';
  const isDry = is === 'trying' || is === 'tried';
  const all = countOf(run) + run.left;
  const orMore = orMoreOf(run);
  const toReplay = `${orMore}${run.replayed.length + run.left}`;
  // A replay is useless if all would be dropped again.
  const isWorthIt = run.left > 0 || run.replayed.some(({ outcome }) => outcome !== 'dropped');
  return (
    <section class="sheet webhooks-run" aria-labelledby="webhooks-run" aria-busy={isUnderWay}>
      <h2 id="webhooks-run" ref={heading} tabIndex={-1}>
        {isDry ? 'Dry run: expected results' : 'Replay: results'}
      </h2>
      {isUnderWay && (
        <div class="webhooks-progress">
          <progress
            aria-label={isDry ? 'Dry run' : 'Replay'}
            max={Math.max(all, 1)}
            {...(all > 0 && { value: countOf(run) })}
          />
          <span>
            {countOf(run)} of {all === 0 ? '…' : `${orMore}${all}`}
          </span>
          <button type="button" onClick={() => underWay.current?.abort()}>
            Stop
          </button>
        </div>
      )}
      {is === 'replaying' && <p>Keep this page open. The replay stops if you leave the page or change the filter.</p>}
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem} Done before that: {countOf(run)} of {all === 0 ? 'all that match' : `${orMore}${all}`}.
        </p>
      )}
      <Summary run={run} isDry={isDry} isUnderWay={isUnderWay} isCut={isCut} />
      <RunTable run={run} isDry={isDry} />
      {!isUnderWay && (
        <div class="buttons">
          {is === 'tried' && run.replayed.length + run.left > 0 && (
            <button type="button" class={isWorthIt ? 'primary' : ''} onClick={() => setChosen(true)}>
              Replay {toReplay} …
            </button>
          )}
          {isCut && (
            <button type="button" onClick={() => void go(isDry, run)}>
              Continue
            </button>
          )}
          <button type="button" onClick={() => setStage(undefined)}>
            Close
          </button>
        </div>
      )}
      {isAsked && (
        <Confirm
          title={`Replay ${toReplay} webhooks?`}
          action={`Replay ${toReplay}`}
          onClose={() => setChosen(false)}
          onConfirm={async () => void go(false, { ...NOTHING_YET, until: run.until })}
        >
          <p>
            Each is applied again, oldest first, as a new webhook. Members are notified of new statuses. Webhooks that
            arrived after the dry run began are skipped.
          </p>
          <OutcomeCounts outcomes={run.outcomes} />
          {run.left > 0 && <p>The dry run did not check {orMore + run.left} of them. They are replayed too.</p>}
          {run.refused.length > 0 && <p>{run.refused.length} cannot be replayed and do not change.</p>}
        </Confirm>
      )}
    </section>
  );
}

/** The word in front of a count that reached COUNTED, where the service stops counting. */
function orMoreOf({ left }: ReplayRun): string {
  return left < COUNTED ? '' : 'over ';
}

function countOf({ replayed, refused }: ReplayRun): number {
  return replayed.length + refused.length;
}

function Summary({
  run,
  isDry,
  isUnderWay,
  isCut,
}: {
  run: ReplayRun;
  isDry: boolean;
  isUnderWay: boolean;
  isCut: boolean;
}) {
  if (countOf(run) === 0 && !isCut) {
    return isUnderWay ? null : (
      <p>
        Nothing to replay. The matching webhooks were replayed already, or their contents are no longer stored, or they
        were refused for an old token: to replay those, choose “Old token” above.
      </p>
    );
  }
  return (
    <>
      <OutcomeCounts outcomes={run.outcomes} refused={run.refused.length} />
      {!isUnderWay && run.left > 0 && (
        <p>
          {orMoreOf(run) + run.left} were not {isDry ? 'checked' : 'replayed'}.
          {isCut && !isDry && ' A few of them may have been replayed. Replaying them again changes nothing.'}
        </p>
      )}
      {!isUnderWay && isDry && (run.outcomes.dropped ?? 0) > 0 && (
        <p class="faint">
          Some would be dropped again: their cause is not fixed yet. Open one to see the cause. Replaying them now
          changes nothing.
        </p>
      )}
    </>
  );
}
