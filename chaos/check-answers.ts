import { LANES, type Kind } from './plan-faults.ts';
import type { Answer } from './send-webhook.ts';

/** Webhooks by answer; `timeout` is no answer at all. */
export type Answers = Map<Answer['status'], number>;

/** Answers that a sender may see: our two, and, if a process dies during the request, the load balancer's or none. */
const OURS = new Set<Answer['status']>([200, 500]);
const WHILE_DYING = new Set<Answer['status']>([502, 503, 'timeout']);
/** Faults that excuse no other answer: a replacement is announced, and what lasts must not be felt at the door. */
const HARMLESS: ReadonlySet<Kind> = new Set(['roll', ...Object.keys(LANES.lasting)] as Kind[]);

/** @returns the answers that break the contract, in words */
export function checkAnswers(answers: Answers, faults: ReadonlySet<Kind>): string[] {
  const excused = [...faults].some((kind) => !HARMLESS.has(kind));
  return [...answers].flatMap(([status, count]) =>
    OURS.has(status) || (excused && WHILE_DYING.has(status)) ? [] : [`${count} webhooks were answered ${status}`],
  );
}
