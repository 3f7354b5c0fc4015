import type { WebhookOutcome, ReplayMany, ReplayedMany } from '../wire.ts';

/** So many in one request, so that one sees it go on. */
const BATCH = 100;

/** What has become of those that match, so far. */
export type ReplayRun = {
  outcomes: Partial<Record<WebhookOutcome, number>>;
  replayed: ReplayedMany['replayed'];
  refused: ReplayedMany['refused'];
  /** How many were not reached yet. */
  left: number;
  /** Of the first answer: what comes later is not part of it. */
  until: string | undefined;
  /** Where it goes on; null at the end. */
  next: string | null;
};

export const NOTHING_YET: ReplayRun = {
  outcomes: {},
  replayed: [],
  refused: [],
  left: 0,
  until: undefined,
  next: null,
};

/**
 * Replays all that match, batch by batch, or only says what would become of them.
 * @param from a run that was cut short, which goes on
 * @yields the whole run, after each batch
 */
export async function* replayInBatches(
  send: (asked: ReplayMany) => Promise<ReplayedMany>,
  asked: ReplayMany,
  from: ReplayRun = NOTHING_YET,
): AsyncGenerator<ReplayRun> {
  let run = from;
  do {
    const answer = await send({
      ...asked,
      limit: BATCH,
      ...(run.until !== undefined && { until: run.until }),
      ...(run.next !== null && { cursor: run.next }),
    });
    run = {
      outcomes: sumOf(run.outcomes, answer.outcomes),
      replayed: [...run.replayed, ...answer.replayed],
      refused: [...run.refused, ...answer.refused],
      left: answer.left,
      until: run.until ?? answer.until,
      next: answer.next,
    };
    yield run;
  } while (run.next !== null);
}

function sumOf(some: ReplayRun['outcomes'], more: ReplayRun['outcomes']): ReplayRun['outcomes'] {
  const sum = { ...some };
  for (const [outcome, count] of Object.entries(more) as [WebhookOutcome, number][]) {
    sum[outcome] = (sum[outcome] ?? 0) + count;
  }
  return sum;
}
