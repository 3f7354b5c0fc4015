import type { StatusReport } from '../test/support/start-pos.ts';
import type { Kitchen } from './set-stage.ts';

/** What the sender of a webhook saw. `timeout`: no answer in its time, or a connection that broke. */
export type Answer = {
  status: number | 'timeout';
  tookMs: number;
  /** Empty where the answer has none. */
  outcome: string;
  /** The id that the webhook is kept by, or will be once it is drained. Empty where the answer has none. */
  webhookId: string;
};

type Body = { outcome?: string; webhookId?: string; deliveryId?: string } | null;

/** Sends one status to the kitchen's own URL, with its own token. */
export async function sendStatus(
  { pos, webhookUrl }: Kitchen,
  report: StatusReport,
  timeoutMs: number,
): Promise<Answer> {
  const began = performance.now();
  const answer = await pos.sendStatus(webhookUrl, report, timeoutMs).catch(() => ({ status: 'timeout' as const }));
  const tookMs = performance.now() - began;
  const { outcome = '', webhookId, deliveryId = '' } = ('body' in answer ? (answer.body as Body) : null) ?? {};
  return { status: answer.status, tookMs, outcome, webhookId: webhookId ?? deliveryId };
}
