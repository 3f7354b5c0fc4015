import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusReport } from '../../world/pos/start-pos.ts';
import { sendStatus, type Answer, type Kitchen, type Vendor } from './send-status.ts';

const isWorthTwo = (status: number | 'timeout'): boolean =>
  status === 'timeout' || status === 404 || status === 429 || status >= 500;

/** Sends everything once. */
export const CARELESS: Vendor = { name: 'careless', timeoutMs: 3_000, again: () => undefined };

export const VENDORS: readonly Vendor[] = [
  { name: 'patient', timeoutMs: 10_000, again: (_, tries) => Math.min(5_000, 250 * 2 ** tries) },
  {
    name: 'brief',
    timeoutMs: 5_000,
    again: (status, tries) => (tries <= 2 && isWorthTwo(status) ? 1_000 * tries : undefined),
  },
  CARELESS,
];

/** Sends one webhook, and repeats it as its vendor does. Calls `onAnswer` for every answer, in order. */
export async function sendWebhook(about: {
  kitchen: Kitchen;
  report: StatusReport;
  /** Ends the repeats. */
  signal: AbortSignal;
  onAnswer: (answer: Answer) => void;
}): Promise<void> {
  const { kitchen, report, signal, onAnswer } = about;
  const { vendor } = kitchen;
  for (let tries = 1; ; tries += 1) {
    const answer = await sendStatus(kitchen, report, vendor.timeoutMs);
    onAnswer(answer);
    if (answer.status !== 'timeout' && answer.status >= 200 && answer.status < 300) return;
    const waitMs = vendor.again(answer.status, tries);
    if (waitMs === undefined || signal.aborted) return;
    await sleep(waitMs, undefined, { signal }).catch(() => {});
  }
}
