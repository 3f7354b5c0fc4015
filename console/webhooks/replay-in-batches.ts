import { Refused } from '../call.ts';
import type { ListedWebhook, Replayed, ReplayMany, ReplayedMany, WebhookOutcome } from '../wire.ts';

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

/**
 * Replays chosen webhooks one by one, oldest first, or only predicts the results.
 * @yields the whole run, after each webhook
 * @throws what keeps it from being replayed, unless that is the webhook itself
 */
export async function* replayEach(
  replay: (webhookId: string) => Promise<Replayed>,
  webhooks: readonly Pick<ListedWebhook, 'webhookId' | 'receivedAt' | 'locationId' | 'integration'>[],
  from: ReplayRun = NOTHING_YET,
): AsyncGenerator<ReplayRun> {
  const done = from.replayed.length + from.refused.length;
  // The id of a webhook begins with its time.
  const all = webhooks.toSorted((one, other) => (one.webhookId < other.webhookId ? -1 : 1));
  let run: ReplayRun = { ...from, left: all.length - done };
  for (const webhook of all.slice(done)) {
    const result = await replay(webhook.webhookId).catch((error: unknown) => refusalOf(error));
    const left = run.left - 1;
    const end = { left, next: left === 0 ? null : webhook.webhookId };
    run =
      'refused' in result
        ? { ...run, ...end, refused: [...run.refused, { ...webhook, ...result }] }
        : {
            ...run,
            ...end,
            replayed: [...run.replayed, result],
            outcomes: sumOf(run.outcomes, { [result.outcome]: 1 }),
          };
    yield run;
  }
}

/** @throws the error, if it is not about one webhook */
function refusalOf(error: unknown): Pick<ReplayRun['refused'][number], 'refused' | 'cause'> {
  if (!(error instanceof Refused) || error.status !== 409 || error.reason === null) throw error;
  return { refused: error.message, cause: error.reason as ReplayRun['refused'][number]['cause'] };
}

function sumOf(some: ReplayRun['outcomes'], more: ReplayRun['outcomes']): ReplayRun['outcomes'] {
  const sum = { ...some };
  for (const [outcome, count] of Object.entries(more) as [WebhookOutcome, number][]) {
    sum[outcome] = (sum[outcome] ?? 0) + count;
  }
  return sum;
}
