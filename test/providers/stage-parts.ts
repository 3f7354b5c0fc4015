import { expect, onTestFinished } from 'vitest';
import { KitchenOrder } from '../../src/core/domain/order.ts';
import type { PosContext, Webhook } from '../../src/core/domain/provider.ts';
import { boundedFetch } from '../../src/core/egress/bounded-fetch.ts';
import { sampleOrder, type SampleOptions } from '../../world/platform/sample-order.ts';
import { inMemoryCredentials } from '../../packages/provider-kit/contract/in-memory-credentials.ts';

/** What the core calls a provider with at this time, with some of it replaced. */
export function contextAt<Settings>(
  now: Date,
  settings: Settings,
  more: Partial<PosContext<Settings>> = {},
): PosContext<Settings> {
  const signal = AbortSignal.timeout(60_000);
  return { settings, now, signal, credentials: inMemoryCredentials(() => now), fetch: boundedFetch(), ...more };
}

/** A webhook that came at this time and is not verified yet. */
export function webhookAt(
  receivedAt: Date,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
  url = 'https://expediter.example.com/webhook/pos/club-1?token=t-1',
): Webhook {
  return { headers, body: Buffer.from(body), url, receivedAt, verified: false };
}

/** As the core gives it to a provider. */
export function orderOf(options: SampleOptions = {}): KitchenOrder {
  return KitchenOrder.parse(sampleOrder(options));
}

export type OrderItem = KitchenOrder['items'][number];

/** The first item of the sample, with some of it replaced. */
export function burgerWith(changed: Partial<OrderItem>): OrderItem {
  return { ...first(orderOf().items), ...changed };
}

/** Stops it when the test ends, however it ends. */
export function stopAtEnd<Server extends { stop(): Promise<void> }>(server: Server): Server {
  onTestFinished(() => server.stop());
  return server;
}

/** Fails unless it is an error of this type that says so. */
export function expectError(error: Error, type: new (...args: never[]) => Error, words: string | RegExp): void {
  expect(error).toBeInstanceOf(type);
  expect(error.message).toMatch(words);
}

export function first<Item>([item]: readonly Item[]): Item {
  return item ?? expect.unreachable('there is none');
}
