import { setTimeout as sleep } from 'node:timers/promises';
import type { Postgres } from '../../world/postgres/start-postgres.ts';
import { until } from '../../world/processes/until.ts';
import { deliveryIdIn, type WebhookAnswer } from './cook-orders.ts';
import type { Timeline } from './journey-lines.ts';

/** An outage of Postgres, and the outcomes of the webhooks that the POS sent after it began. */
export type Outage = {
  seconds: number;
  /** The number of webhooks that were answered 200 `accepted`. */
  accepted: number;
  /** The number of webhooks that the POS had to repeat, which it must do if there is no spill. */
  repeated: number;
  /** How many of the accepted webhooks got each outcome when Postgres was back. */
  outcomes: Record<string, number>;
};

export const OUTAGE_MS = 10_000;

/**
 * Crashes Postgres and starts it again with its data.
 * @returns a function that reads the outcomes of the webhooks; call it when the orders have ended
 */
export async function interruptPostgres(about: {
  postgres: Postgres;
  /** The answers to the POS's webhooks. The array grows during the outage. */
  answers: readonly WebhookAnswer[];
  /** @returns the outcome of a webhook, undefined if it is not stored */
  outcomeOf: (webhookId: string) => Promise<string | undefined>;
  timeline: Timeline;
  signal: AbortSignal;
}): Promise<() => Promise<Outage>> {
  const { postgres, answers, outcomeOf, timeline, signal } = about;
  const before = answers.length;
  const began = performance.now();
  await postgres.stop('immediate');
  timeline.printOfAll('Postgres', `is stopped for ${OUTAGE_MS / 1_000} s; the kitchen continues`, 'bad');
  await sleep(OUTAGE_MS, undefined, { signal });
  await postgres.restart();
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  timeline.printOfAll('Postgres', `is back after ${seconds} s`, 'good');

  return async () => {
    const during = answers.slice(before);
    const ids = during.map(deliveryIdIn).filter((id) => id !== undefined);
    const outcomes: Record<string, number> = {};
    const kept = ids.map((id) => until(() => outcomeOf(id)).catch(() => 'missing'));
    for (const outcome of await Promise.all(kept)) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    return {
      seconds,
      accepted: ids.length,
      repeated: during.filter(({ attempts = 1 }) => attempts > 1).length,
      outcomes,
    };
  };
}

/** @returns a sentence that names the broken promise, or undefined */
export function checkOutage(
  { accepted, repeated, outcomes }: Omit<Outage, 'seconds'>,
  hasSpill: boolean,
): string | undefined {
  // The journeys show whether the last repeats were applied.
  if (!hasSpill && accepted === 0 && repeated > 0) return undefined;
  if (accepted === 0) return 'no webhook arrived while Postgres was down';
  // A POS may repeat a status, or report something that is no status. A `stale` webhook means that the member was never
  // notified of its status.
  const { applied = 0, duplicate = 0, ignored = 0 } = outcomes;
  if (applied > 0 && applied + duplicate + ignored === accepted) return undefined;
  return `the ${accepted} webhooks accepted while Postgres was down became ${JSON.stringify(outcomes)}`;
}
