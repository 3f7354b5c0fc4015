import { LANES, isAwayAlone, type Kind } from './plan-faults.ts';
import type { Answer } from './send-status.ts';

const TAKEN = new Set<Answer['status']>([200]);
/** Answers that a sender may see: our two, and, if a process dies during the request, the load balancer's or none. */
const OURS = new Set<Answer['status']>([200, 500]);
const WHILE_DYING = new Set<Answer['status']>([502, 503, 'timeout']);
/** Faults that excuse no other answer: a replacement is announced, and what lasts must not be felt at the door. */
const HARMLESS: ReadonlySet<Kind> = new Set(['roll', ...Object.keys(LANES.lasting)] as Kind[]);
/** Faults that excuse no late answer: what is waited for is away, and no process stands still. */
const AWAY: ReadonlySet<Kind> = new Set(['away', 'publish', 'publish-hang']);
/** The promise, as the sender sees it. */
const IN_TIME_MS = 1_500;
/** Of all answers, what has to be as promised while something is away. The rest is for processes that are killed. */
const SHARE = 0.999;

/** @returns the answers that break the contract, in words */
export function checkAnswers(answers: readonly Answer[], faults: ReadonlySet<Kind>): string[] {
  const excused = [...faults].some((kind) => !HARMLESS.has(kind));
  return [...countAnswers(answers)].flatMap(([status, count]) =>
    OURS.has(status) || (excused && WHILE_DYING.has(status)) ? [] : [`${count} webhooks were answered ${status}`],
  );
}

/** @returns what is wrong with how soon they came, on a machine that is so many times slower */
export function checkPace(answers: readonly Answer[], faults: ReadonlySet<Kind>, slowdown: number): string | undefined {
  if ([...faults].some((kind) => !AWAY.has(kind))) return undefined;
  // Without Postgres alone they are spilled, and none is refused.
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
