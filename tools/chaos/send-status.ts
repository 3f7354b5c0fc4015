import type { Pos, StatusReport } from '../../world/pos/start-pos.ts';

/**
 * How a vendor repeats a webhook that was not answered with 2xx. Real pauses are minutes; here they are seconds, so
 * that they fit into a run.
 */
export type Vendor = {
  name: string;
  timeoutMs: number;
  /** @returns milliseconds until the next try, or undefined to give up */
  again(status: number | 'timeout', tries: number): number | undefined;
};

/** A location with its POS. */
export type Kitchen = {
  locationId: string;
  integration: string;
  pos: Pos;
  vendor: Vendor;
  /** The URL at the load balancer, with its token. */
  webhookUrl: string;
  /** True if the POS does not answer during the whole run. */
  dead: boolean;
};

/** The answer to a webhook, as its sender saw it. `timeout`: no answer in time, or a broken connection. */
export type Answer = {
  /** When it was sent, as `performance.now()` says. */
  at: number;
  status: number | 'timeout';
  tookMs: number;
  /** Empty if the answer has none. */
  outcome: string;
  /** The id under which the webhook is stored, or will be if it was spilled. Empty if the answer has none. */
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
  return { at: began, status: answer.status, tookMs, outcome, webhookId: webhookId ?? deliveryId };
}
