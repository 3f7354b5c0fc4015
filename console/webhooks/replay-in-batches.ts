import type { WebhookOutcome, ReplayMany, ReplayedMany } from '../wire.ts';

/** Webhooks in one request, few enough to show progress. */
const BATCH = 100;

/** The result so far. */
export type ReplayRun = {
  outcomes: Partial<Record<WebhookOutcome, number>>;
  replayed: ReplayedMany['replayed'];
  refused: ReplayedMany['refused'];
  /** Webhooks that are not replayed yet. */
  left: number;
  /** The end of the period, from the first answer. Later webhooks are not replayed. */
  until: string | undefined;
  /** Where to continue. Null at the end. */
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
 * Replays all matching webhooks batch by batch, or only predicts the result.
 * @param from an interrupted run, to continue it
 * @yields the whole run, after each batch
 */
export async function* replayInBatches(
  send: (request: ReplayMany) => Promise<ReplayedMany>,
  request: ReplayMany,
  from: ReplayRun = NOTHING_YET,
): AsyncGenerator<ReplayRun> {
  let run = from;
  do {
    const answer = await send({
      ...request,
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
