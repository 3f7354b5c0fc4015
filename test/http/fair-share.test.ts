import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BeyondShare, fairShare, type FairShare } from '../../src/http/fair-share.ts';

let share: FairShare;
let heldBack: string[];
/** Milliseconds that the clock shows. It stands still but for \`fallBehind\` and \`pass\`. */
let clock: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  heldBack = [];
  clock = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  share = fairShare(100, (locationId) => heldBack.push(locationId));
});
afterEach(() => {
  share.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** How many of so many webhooks get in. */
function send(locationId: string, count: number, bytes = 0): number {
  let taken = 0;
  for (let nth = 0; nth < count; nth += 1) {
    try {
      share.admit(locationId);
      share.spend(locationId, bytes);
      taken += 1;
    } catch (error) {
      expect(error).toBeInstanceOf(BeyondShare);
    }
  }
  return taken;
}

/** Passes time in which the process keeps up. */
function pass(milliseconds: number): void {
  for (let passed = 0; passed < milliseconds; passed += 20) {
    clock += 20;
    vi.advanceTimersByTime(20);
  }
}

/** Passes time in which the process cannot do anything, as too much work does. */
function fallBehind(milliseconds = 200): void {
  clock += milliseconds;
  pass(20);
}

it('a location that floods is limited when the process falls behind, and no other location is limited', () => {
  send('quiet', 1);
  expect(send('flood', 1_000)).toBe(1_000);
  fallBehind();
  send('quiet', 1);
  expect(send('flood', 1_000)).toBeLessThan(100);
  expect(send('quiet', 50)).toBe(50);
  expect(heldBack).toEqual(['flood']);
});

it('a location is no longer limited once the process has kept up for half a second', () => {
  send('flood', 1);
  fallBehind(1_100);
  pass(600);
  send('quiet', 1);
  expect(send('flood', 1_000)).toBe(1_000);
});

it('a limited location may send 100 webhooks per second once the process has caught up', () => {
  send('flood', 1_000);
  fallBehind();
  send('quiet', 1);
  send('flood', 1_000);
  pass(1_000);
  send('quiet', 1);
  const taken = send('flood', 1_000);
  expect(taken).toBeGreaterThan(50);
  expect(taken).toBeLessThan(250);
});

it('a location is not limited if no other location sends webhooks', () => {
  send('flood', 1_000);
  fallBehind();
  expect(send('flood', 1_000)).toBe(1_000);
});

it('no location is limited if all locations send the same large number of webhooks', () => {
  const all = Array.from({ length: 10 }, (_, nth) => `club-${nth}`);
  for (const locationId of all) send(locationId, 1_000);
  fallBehind();
  pass(1_000);
  expect(all.map((locationId) => send(locationId, 500))).toEqual(all.map(() => 500));
});

it('a location is limited after fewer webhooks if their bodies are large', () => {
  send('large', 20, 2 ** 20);
  fallBehind();
  send('quiet', 1);
  expect(send('large', 100, 2 ** 20)).toBe(0);
});

it('a location without valid signatures is limited to its share even if the process keeps up', () => {
  share.distrust('forged');
  send('quiet', 1);
  expect(send('forged', 100, 2 ** 20)).toBeLessThan(20);
  expect(send('large', 100, 2 ** 20)).toBe(100);
  expect(send('quiet', 50)).toBe(50);
});
