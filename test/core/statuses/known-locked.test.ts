import { afterEach, expect, it, vi } from 'vitest';
import type { TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { lockWaits } from '../../../src/core/statuses/locked-orders.ts';

const about = (locationId: string, ...events: object[]) =>
  ({ locationId, integration: 'standard', events }) as unknown as TranslatedWebhook;

afterEach(() => vi.useRealTimers());

it("the list of locked orders knows an order by our id and by the POS id, at the order's own location", () => {
  const known = lockWaits();
  known.add(about('club', { serviceOrderId: 'a', providerOrderId: 'pos-a' }));
  expect(known.has(about('club', { serviceOrderId: 'a' }))).toBe(true);
  expect(known.has(about('club', { serviceOrderId: 'z' }, { providerOrderId: 'pos-a' }))).toBe(true);
  expect(known.has(about('club', { serviceOrderId: 'pos-a' }))).toBe(false);
  expect(known.has(about('other', { serviceOrderId: 'a' }))).toBe(false);
});

it('the list of locked orders forgets an order after a webhook about it is applied, and after ten seconds', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const known = lockWaits();
  known.add(about('club', { serviceOrderId: 'a' }));
  known.remove(about('club', { serviceOrderId: 'a' }));
  expect(known.size()).toBe(0);
  known.add(about('club', { serviceOrderId: 'b' }));
  vi.advanceTimersByTime(9_000);
  expect(known.has(about('club', { serviceOrderId: 'b' }))).toBe(true);
  vi.advanceTimersByTime(1_000);
  expect(known.has(about('club', { serviceOrderId: 'b' }))).toBe(false);
  expect(known.size()).toBe(0);
});
