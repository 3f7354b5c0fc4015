import type { History } from './history.ts';
import { sendStatus } from './send-status.ts';
import type { Served } from './serve-orders.ts';
import type { Kitchen } from './send-status.ts';

export type Probe = {
  stop(): Promise<void>;
  /**
   * Seconds from `at` (milliseconds since the run's beginning) to the first second in which 95 % of the offers are
   * committed at the first try; undefined if there is none before `until`. A spilled offer does not count, because it
   * waits for Postgres.
   */
  recoverySeconds(at: number, until: number): number | undefined;
  /** @returns how many of the offers within these spans were not answered 200 */
  refused(spans: readonly Span[]): number;
};

/** The beginning and the end, in milliseconds since the run's beginning. */
export type Span = readonly [from: number, until: number];

const PER_SECOND = 50;
const SHARE = 0.95;
const STEP_MS = 100;
const WINDOW_MS = 1_000;
/** Time to wait for an answer. The service promises 1.5 s, to which the load balancer adds some time. */
export const ANSWER_MS = 2_000;

/** Sends webhooks at a steady pace, whatever the answers. Each has an event that is ignored, but is still committed. */
export function probeEndpoint(kitchen: Kitchen, history: History, { answers, acknowledged }: Served): Probe {
  const offered: { at: number; taken: boolean; committed: boolean }[] = [];
  const underWay = new Set<Promise<void>>();

  const offer = async (): Promise<void> => {
    const probe = { at: history.now(), taken: false, committed: false };
    offered.push(probe);
    const report = { eventType: 'menu.changed', serviceOrderId: 'none', status: 'none' };
    const answer = await sendStatus(kitchen, report, ANSWER_MS);
    answers.push(answer);
    const { status, webhookId, outcome } = answer;
    if (status !== 200) return;
    acknowledged.push({ webhookId, outcome, locationId: kitchen.locationId });
    probe.taken = true;
    probe.committed = outcome !== 'accepted';
  };
  const timer = setInterval(() => {
    const offering: Promise<void> = offer().finally(() => underWay.delete(offering));
    underWay.add(offering);
  }, 1_000 / PER_SECOND);

  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
    },
    recoverySeconds(at, until) {
      for (let from = at; from + WINDOW_MS <= until; from += STEP_MS) {
        const inWindow = offered.filter((probe) => probe.at >= from && probe.at < from + WINDOW_MS);
        const committed = inWindow.filter((probe) => probe.committed).length;
        // Compared with the number that was due, so that a pause of the harness does not look like a recovery.
        if (committed >= SHARE * Math.max(inWindow.length, PER_SECOND * 0.7)) return (from - at) / 1_000;
      }
      return undefined;
    },
    refused: (spans) =>
      offered.filter(({ at, taken }) => !taken && spans.some(([from, until]) => at >= from && at < until)).length,
  };
}
