import { expect, it } from 'vitest';
import type { TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { fairQueue } from '../../../src/core/statuses/fair-queue.ts';

const waiting = (locationId: string, id: string, events = 1) => ({
  webhook: { id, locationId, events: Array.from({ length: events }) } as unknown as TranslatedWebhook,
});
const ids = (taken: { webhook: TranslatedWebhook }[]): string[] => taken.map(({ webhook }) => webhook.id);

it('the queue takes webhooks from each location in turn, so that a flood does not delay another location', () => {
  const queue = fairQueue();
  for (let nth = 0; nth < 1_000; nth += 1) queue.add(waiting('flood', `flood ${nth}`));
  queue.add(waiting('quiet', 'quiet 1'));
  queue.add(waiting('quiet', 'quiet 2'));
  const taken = ids(queue.take());
  expect(taken.slice(0, 5)).toEqual(['flood 0', 'quiet 1', 'flood 1', 'quiet 2', 'flood 2']);
  expect(taken).toHaveLength(256);
  expect(queue.size()).toBe(1_002 - 256);
});

it('the queue continues with the location where the last batch ended', () => {
  const queue = fairQueue();
  for (let nth = 0; nth < 300; nth += 1) queue.add(waiting(`club-${nth}`, `first of ${nth}`));
  queue.add(waiting('club-0', 'second of 0'));
  expect(ids(queue.take()).at(-1)).toBe('first of 255');
  const second = ids(queue.take());
  expect(second[0]).toBe('first of 256');
  expect(second).toContain('second of 0');
  expect(queue.take()).toEqual([]);
});

it('the queue gives a batch as many events as fit into one statement, and at least one webhook', () => {
  const queue = fairQueue();
  for (let nth = 0; nth < 30; nth += 1) queue.add(waiting('club-1', `${nth}`, 50));
  expect(queue.take()).toHaveLength(20);
  expect(queue.take()).toHaveLength(10);
  queue.add(waiting('club-1', 'huge', 5_000));
  expect(queue.take()).toHaveLength(1);
});

it('the queue is full for one location at a quarter of its size, and earlier if more locations fill the queue', () => {
  const queue = fairQueue();
  const flood = (locationId: string): number => {
    let added = 0;
    for (; !queue.isFullFor(locationId); added += 1) queue.add(waiting(locationId, `${added}`));
    return added;
  };
  const taken = Array.from({ length: 10 }, (_, nth) => flood(`flood-${nth}`));
  expect(taken[0]).toBe(1_024);
  expect(taken[1]).toBe(768);
  expect(flood('quiet')).toBeGreaterThan(50);
  expect(queue.size()).toBeLessThan(4_096);
});

it('the queue forgets a webhook that waited too long', () => {
  const queue = fairQueue();
  const late = waiting('club-1', 'late');
  queue.add(late);
  queue.remove(late);
  queue.remove(late);
  expect(queue.size()).toBe(0);
  expect(queue.take()).toEqual([]);
});
