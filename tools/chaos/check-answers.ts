import { LANES, isAwayAlone, type Kind } from './plan-faults.ts';
import type { Answer } from './send-status.ts';

const TAKEN = new Set<Answer['status']>([200]);
/** Answers that a sender may see: 200 and 500 from us. If a process dies during the request, also WHILE_DYING. */
const OURS = new Set<Answer['status']>([200, 500]);
const WHILE_DYING = new Set<Answer['status']>([502, 503, 'timeout']);
/** Faults during which only OURS are allowed: a replaced process drains, and lasting faults must not affect others. */
const HARMLESS: ReadonlySet<Kind> = new Set(['roll', ...Object.keys(LANES.lasting)] as Kind[]);
/** Faults during which answers must be in time: Postgres or Pub/Sub fails, but no process is stopped. */
const AWAY: ReadonlySet<Kind> = new Set(['away', 'publish', 'publish-hang']);
/** The promised time to answer, as the sender measures it. */
const IN_TIME_MS = 1_500;
/** The share of answers that must be as promised. The rest may be lost with processes that are killed. */
const SHARE = 0.999;

/** @returns the answers that break the contract, in words */
export function checkAnswers(answers: readonly Answer[], faults: ReadonlySet<Kind>): string[] {
  const excused = [...faults].some((kind) => !HARMLESS.has(kind));
  return [...countAnswers(answers)].flatMap(([status, count]) =>
    OURS.has(status) || (excused && WHILE_DYING.has(status)) ? [] : [`${count} webhooks were answered ${status}`],
  );
}

/** @param slowdown how many times slower the machine was @returns a sentence if too many answers were late */
export function checkPace(answers: readonly Answer[], faults: ReadonlySet<Kind>, slowdown: number): string | undefined {
  if ([...faults].some((kind) => !AWAY.has(kind))) return undefined;
  // If only Postgres fails, webhooks are spilled, so none is refused.
  const promised = isAwayAlone(faults) ? TAKEN : OURS;
  const withinMs = IN_TIME_MS * slowdown;
  const share = shareInTime(answers, promised, withinMs);
  if (share >= SHARE) return undefined;
  return `${share} of all webhooks were answered ${[...promised].join(' or ')} within ${withinMs} ms`;
}

/** Returns the share of webhooks that were answered 200 in time, to six places, rounded down. */
export const known200 = (answers: readonly Answer[]): number => shareInTime(answers, TAKEN);

export function countAnswers(answers: readonly Answer[]): Map<Answer['status'], number> {
  const counts = new Map<Answer['status'], number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}

function shareInTime(
  answers: readonly Answer[],
  statuses: ReadonlySet<Answer['status']>,
  withinMs = IN_TIME_MS,
): number {
  const inTime = answers.filter(({ status, tookMs }) => statuses.has(status) && tookMs <= withinMs);
  return answers.length === 0 ? 1 : Math.floor((1e6 * inTime.length) / answers.length) / 1e6;
}
