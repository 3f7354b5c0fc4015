import type { Kind } from './plan-faults.ts';
import type { Answer } from './send-webhook.ts';

/** How many webhooks were answered with what; `timeout` is no answer at all. */
export type Answers = Map<Answer['status'], number>;

/** What a sender may see: our two, and, where a process dies under its request, the load balancer's or nothing. */
const OURS = new Set<Answer['status']>([200, 500]);
const WHILE_DYING = new Set<Answer['status']>([502, 503, 'timeout']);
/** Faults that are no excuse: a replacement is announced, and what is outside is no webhook's concern. */
const HARMLESS: ReadonlySet<Kind> = new Set<Kind>(['roll']);

/** @returns what is no answer of the contract's, in words */
export function checkAnswers(answers: Answers, faults: ReadonlySet<Kind>): string[] {
  const excused = [...faults].some((kind) => !HARMLESS.has(kind));
  return [...answers].flatMap(([status, count]) =>
    OURS.has(status) || (excused && WHILE_DYING.has(status)) ? [] : [`${count} webhooks were answered ${status}`],
  );
}
