import { setTimeout as sleep } from 'node:timers/promises';
import type { SignedWebhook } from './simulator.ts';

/** A vendor's policy for repeating a webhook. */
export type Delivery = {
  /** Milliseconds before each repeat. */
  waits: readonly number[];
  timeoutMs: number;
  acknowledges: (status: number) => boolean;
  /** Tells whether to repeat a failed attempt; by default always. 0 means no answer. */
  repeats?: (status: number) => boolean;
};

/** @param sign makes a new request for each attempt, counted from 1 */
export async function deliverWebhook(
  url: string,
  sign: (attempt: number) => SignedWebhook,
  { waits, timeoutMs, acknowledges, repeats = () => true }: Delivery,
  hurry: number,
): Promise<{ status: number; body: unknown; attempts: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const { headers, body } = sign(attempt);
    const answer = await post(url, headers, body, timeoutMs);
    const wait = waits[attempt - 1];
    if (acknowledges(answer.status) || wait === undefined || !repeats(answer.status)) {
      return { ...answer, attempts: attempt };
    }
    await sleep(wait / hurry);
  }
}

async function post(
  url: string,
  headers: Record<string, string>,
  body: Buffer,
  timeoutMs: number,
): Promise<{ status: number; body: unknown }> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body), signal });
    return { status: response.status, body: parseIfJson(await response.text()) };
  } catch {
    return { status: 0, body: undefined };
  }
}

function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
