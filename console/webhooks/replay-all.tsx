import type { Ref } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { may } from '../may.ts';
import type { ListedWebhook, ReplayMany, Replayed, ReplayedMany } from '../wire.ts';
import { replayOf, type WebhookFilter } from './webhook-filter.ts';
import { NOTHING_YET, replayEach, replayInBatches, type ReplayRun } from './replay-in-batches.ts';
import { mayChange } from './outcome-meaning.ts';
import { OutcomeCounts, RunTable } from './run-table.tsx';

/** The service counts remaining webhooks up to this number. */
const COUNTED = 10_000;

type Stage = {
  is: 'trying' | 'tried' | 'replaying' | 'replayed';
  run: ReplayRun;
  /** The chosen webhooks. Undefined for all that match. */
  of: Chosen | undefined;
  /** True if it stopped before its end. */
  isCut?: boolean;
  /** The error that stopped it. */
  problem?: string;
};
type Chosen = readonly ListedWebhook[];

type AboutReplayAll = {
  filter: WebhookFilter;
  /** True if the dry run begins at once. */
  isBegun: boolean;
  chosen: Chosen;
  onClear: () => void;
  onReplayed: (replayed: ReplayRun['replayed']) => void;
};

/** Replays all matching webhooks, or the chosen ones: a dry run, a confirmation, then the replay of the same webhooks. */
export function ReplayAll({ filter, isBegun, chosen, onClear, onReplayed }: AboutReplayAll) {
  const [stage, setStage] = useState<Stage>();
  const underWay = useRef<AbortController | undefined>(undefined);
  const heading = useRef<HTMLHeadingElement>(null);
  const begin = useRef<HTMLButtonElement>(null);
  const confirm = useRef<HTMLButtonElement>(null);
  const stageBefore = useRef<Stage['is'] | undefined>(undefined);
  // The pressed button was removed, so another element gets the focus.
  useEffect(() => {
    if (stage !== undefined) (confirm.current ?? heading.current)?.focus();
    else if (stageBefore.current !== undefined) begin.current?.focus();
    stageBefore.current = stage?.is;
  }, [stage?.is]);
  const all = may('operator', filter.location || { anywhere: true })
    ? replayOf(filter)
    : { why: 'To replay them, you need the role operator here.' };

  const go = async (isDry: boolean, from: ReplayRun, of: Chosen | undefined): Promise<void> => {
    const stop = new AbortController();
    underWay.current = stop;
    const { signal } = stop;
    const [during, after] = isDry ? (['trying', 'tried'] as const) : (['replaying', 'replayed'] as const);
    const runs =
      of === undefined
        ? replayInBatches(
            (body: ReplayMany): Promise<ReplayedMany> => ask('POST', '/webhooks/replay', { body, signal }),
            { ...all, dryRun: isDry },
            from,
          )
        : replayEach(
            (id): Promise<Replayed> => ask('POST', `/webhooks/${id}/replay`, { body: { dryRun: isDry }, signal }),
            of,
            from,
          );
    let run = from;
    setStage({ is: during, run, of });
    try {
      for await (run of runs) {
        if (signal.aborted) break;
        setStage({ is: during, run, of });
      }
      setStage({ is: after, run, of, isCut: run.next !== null });
      announce(`${isDry ? 'Dry run' : 'Replay'} ended: ${countOf(run)} webhooks`);
    } catch (error) {
      const why = signal.aborted ? {} : { problem: (error as Error).message };
      setStage({ is: after, run, of, isCut: true, ...why });
    }
    if (!isDry) onReplayed(run.replayed);
  };

  useEffect(() => {
    if (isBegun && !('why' in all)) void go(true, NOTHING_YET, undefined);
    return () => underWay.current?.abort();
  }, []);

  if (stage === undefined) {
    return (
      <Begin
        button={begin}
        why={'why' in all ? all.why : undefined}
        chosen={chosen}
        onClear={onClear}
        onBegin={(of) => void go(true, NOTHING_YET, of)}
      />
    );
  }

  return (
    <Run
      stage={stage}
      heading={heading}
      confirm={confirm}
      onReplay={(run, of) => void go(false, { ...NOTHING_YET, until: run.until }, of)}
      onContinue={(isDry, run, of) => void go(isDry, run, of)}
      onStop={() => underWay.current?.abort()}
      onClose={() => setStage(undefined)}
    />
  );
}

type AboutBegin = {
  button: Ref<HTMLButtonElement>;
  /** Why those that match cannot be replayed. Undefined if they can be. */
  why: string | undefined;
  chosen: Chosen;
  onClear: () => void;
  onBegin: (of: Chosen | undefined) => void;
};

function Begin({ button, why, chosen, onClear, onBegin }: AboutBegin) {
  return (
    <div class={`row webhooks-all ${chosen.length > 0 ? 'chosen' : ''}`}>
      {chosen.length > 0 ? (
        <>
          <button ref={button} type="button" class="primary" onClick={() => onBegin(chosen)}>
            Replay {chosen.length} …
          </button>
          <button type="button" onClick={onClear}>
            Clear
          </button>
        </>
      ) : (
        why === undefined && (
          <button ref={button} type="button" class="primary" onClick={() => onBegin(undefined)}>
            Replay all that match …
          </button>
        )
      )}
      <span class="faint">
        {why !== undefined && chosen.length === 0
          ? why
          : 'A dry run first shows the result for each webhook, and changes nothing.'}
      </span>
    </div>
  );
}

type AboutRun = {
  stage: Stage;
  heading: Ref<HTMLHeadingElement>;
  confirm: Ref<HTMLButtonElement>;
  onReplay: (run: ReplayRun, of: Chosen | undefined) => void;
  onContinue: (isDry: boolean, run: ReplayRun, of: Chosen | undefined) => void;
  onStop: () => void;
  onClose: () => void;
};

/** A dry run or a replay, and what can be done with it. */
function Run({ stage, heading, confirm, onReplay, onContinue, onStop, onClose }: AboutRun) {
  const { is, run, of, isCut = false, problem } = stage;
  const isUnderWay = is === 'trying' || is === 'replaying';
  const isDry = is === 'trying' || is === 'tried';
  const count = countOf(run) + run.left;
  const orMore = orMoreOf(run);
  const toReplay = `${orMore}${run.replayed.length + run.left}`;
  // A replay that would change nothing is not offered.
  const isWorthIt = run.left > 0 || run.replayed.some(mayChange);
  return (
    <section class="sheet webhooks-run" aria-labelledby="webhooks-run" aria-busy={isUnderWay}>
      <h2 id="webhooks-run" ref={heading} tabIndex={-1}>
        {isDry ? 'Dry run: expected results' : 'Replay: results'}
      </h2>
      {isUnderWay && (
        <div class="row webhooks-progress">
          <progress
            aria-label={isDry ? 'Dry run' : 'Replay'}
            max={Math.max(count, 1)}
            {...(count > 0 && { value: countOf(run) })}
          />
          <span>
            {countOf(run)} of {count === 0 ? '…' : `${orMore}${count}`}
          </span>
          <button type="button" onClick={onStop}>
            Stop
          </button>
        </div>
      )}
      {is === 'replaying' && <p>Keep this page open. The replay stops if you leave the page or change the filter.</p>}
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem} Done before that: {countOf(run)} of {count === 0 ? 'all that match' : `${orMore}${count}`}.
        </p>
      )}
      <Summary run={run} isDry={isDry} isUnderWay={isUnderWay} isCut={isCut} />
      {is === 'tried' && isWorthIt && (
        <p>
          A replay applies each again, oldest first, as a new webhook. Members are notified of new statuses.
          {of === undefined && ' Webhooks that arrived after the dry run began are skipped.'}
          {run.left > 0 && ` The dry run did not check ${orMore}${run.left} of them. They are replayed too.`}
        </p>
      )}
      {!isUnderWay && (
        <div class="buttons">
          {is === 'tried' && isWorthIt && (
            <button ref={confirm} type="button" class="primary" onClick={() => onReplay(run, of)}>
              Replay {toReplay}
            </button>
          )}
          {isCut && (
            <button type="button" onClick={() => onContinue(isDry, run, of)}>
              Continue
            </button>
          )}
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      )}
      <RunTable run={run} isDry={isDry} />
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

type AboutSummary = { run: ReplayRun; isDry: boolean; isUnderWay: boolean; isCut: boolean };

function Summary({ run, isDry, isUnderWay, isCut }: AboutSummary) {
  if (countOf(run) === 0 && !isCut) {
    return isUnderWay ? null : (
      <p>
        Nothing to replay. The matching webhooks were replayed already, or their contents are no longer stored, or they
        have an old token: to replay those, choose “Old token” above.
      </p>
    );
  }
  return (
    <>
      <OutcomeCounts run={run} isDry={isDry} />
      {!isUnderWay && run.left > 0 && (
        <p>
          {orMoreOf(run) + run.left} were not {isDry ? 'checked' : 'replayed'}.
          {isCut && !isDry && ' A few of them may have been replayed. Replaying them again changes nothing.'}
        </p>
      )}
      {!isUnderWay && isDry && !run.replayed.some(mayChange) && run.left === 0 && (
        <p>A replay would change nothing now.</p>
      )}
      {!isUnderWay && isDry && (run.outcomes.dropped ?? 0) > 0 && (
        <p class="faint">
          Webhooks that would be dropped again have a cause that is not fixed yet. Open one to see it.
        </p>
      )}
    </>
  );
}
