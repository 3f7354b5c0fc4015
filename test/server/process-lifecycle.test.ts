import { expect, it } from 'vitest';
import { processLifecycle, type Part } from '../../src/server/process-lifecycle.ts';

const failures: object[] = [];
const log = { error: (about: object) => void failures.push(about) };

/** Parts that note what is done to them. */
function notingParts(...names: string[]): { parts: Part[]; noted: string[] } {
  const noted: string[] = [];
  const parts = names.map((name) => ({
    name,
    async start() {
      noted.push(`start ${name}`);
    },
    async stop() {
      noted.push(`stop ${name}`);
    },
  }));
  return { parts, noted };
}

it('components start one after another, and stop in the reverse sequence', async () => {
  const { parts, noted } = notingParts('a', 'b', 'c');
  const { start, stop } = processLifecycle(parts, log);
  await start();
  await stop();
  expect(noted).toEqual(['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a']);
});

it('a stop during the start starts no other component, and waits for the one that is starting', async () => {
  const { parts, noted } = notingParts('a', 'b');
  const slow = Promise.withResolvers<void>();
  let signal: AbortSignal | undefined;
  const first: Part = {
    name: 'first',
    start: (stopping) => {
      signal = stopping;
      return slow.promise;
    },
    stop: () => void noted.push('stop first'),
  };
  const { start, stop } = processLifecycle([first, ...parts], log);
  const starting = start();
  const stopped = stop();
  expect(signal?.aborted).toBe(true);
  await new Promise(setImmediate);
  expect(noted).toEqual(['stop b', 'stop a']);
  slow.resolve();
  await Promise.all([starting, stopped]);
  expect(noted).toEqual(['stop b', 'stop a', 'stop first']);
});

it('a component that cannot start fails the start, and the others are stopped', async () => {
  const { parts, noted } = notingParts('a', 'b');
  const wrong = { name: 'wrong', start: () => Promise.reject(new Error('no')) };
  const { start, stop } = processLifecycle([wrong, ...parts], log);
  await expect(start()).rejects.toThrow('no');
  await stop();
  expect(noted).toEqual(['stop b', 'stop a']);
});

it('a component that cannot stop does not prevent others from stopping', async () => {
  const { parts, noted } = notingParts('a', 'b');
  const err = new Error('no');
  const wrong: Part = {
    name: 'wrong',
    stop: () => {
      throw err;
    },
  };
  await processLifecycle([...parts, wrong], log).stop();
  expect(noted).toEqual(['stop b', 'stop a']);
  expect(failures).toEqual([{ err, part: 'wrong' }]);
});
