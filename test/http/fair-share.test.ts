import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { BeyondShare, fairShare, type FairShare } from '../../src/http/fair-share.ts';

let share: FairShare;
let heldBack: string[];
afterEach(() => share.stop());

function begin(): void {
  heldBack = [];
  share = fairShare(100, (locationId) => heldBack.push(locationId));
}

/** How many of so many webhooks get in. */
function send(locationId: string, count: number, bytes = 0): number {
  let taken = 0;
  for (let nth = 0; nth < count; nth += 1) {
    try {
      share.enter(locationId);
      share.spend(locationId, bytes);
      taken += 1;
    } catch (error) {
      expect(error).toBeInstanceOf(BeyondShare);
    }
  }
  return taken;
}

/** Keeps the process from doing anything for a while, as too much work does. */
async function fallBehind(milliseconds = 200): Promise<void> {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
  await sleep(30);
}

it('a location that floods is held back once the process falls behind, and nobody else is', async () => {
  begin();
  send('quiet', 1);
  expect(send('flood', 1_000)).toBe(1_000);
  await fallBehind();
  send('quiet', 1);
  expect(send('flood', 1_000)).toBeLessThan(100);
  expect(send('quiet', 50)).toBe(50);
  expect(heldBack).toEqual(['flood']);
});

it('how far the process fell behind before a time in which nobody sent counts no more', async () => {
  begin();
  send('flood', 1);
  await fallBehind(1_100);
  await sleep(600);
  send('quiet', 1);
  expect(send('flood', 1_000)).toBe(1_000);
});

it('it stays held back when the process has caught up, with its share of 100 a second', async () => {
  begin();
  send('flood', 1_000);
  await fallBehind();
  send('quiet', 1);
  send('flood', 1_000);
  await sleep(1_000);
  send('quiet', 1);
  const taken = send('flood', 1_000);
  expect(taken).toBeGreaterThan(50);
  expect(taken).toBeLessThan(250);
});

it('alone, a location may send as much as it likes', async () => {
  begin();
  send('flood', 1_000);
  await fallBehind();
  expect(send('flood', 1_000)).toBe(1_000);
});

it('where all send much nobody floods', async () => {
  begin();
  const all = Array.from({ length: 10 }, (_, nth) => `club-${nth}`);
  for (const locationId of all) send(locationId, 1_000);
  await fallBehind();
  await sleep(1_000);
  expect(all.map((locationId) => send(locationId, 500))).toEqual(all.map(() => 500));
});

it('large bodies count for more', async () => {
  begin();
  send('large', 20, 2 ** 20);
  await fallBehind();
  send('quiet', 1);
  expect(send('large', 100, 2 ** 20)).toBe(0);
});

it('a location that proves nothing is held to its share, though the process keeps up', () => {
  begin();
  share.distrust('forged');
  send('quiet', 1);
  expect(send('forged', 100, 2 ** 20)).toBeLessThan(20);
  expect(send('large', 100, 2 ** 20)).toBe(100);
  expect(send('quiet', 50)).toBe(50);
});
