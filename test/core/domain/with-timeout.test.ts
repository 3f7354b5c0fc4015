import { afterEach, expect, it, vi } from 'vitest';
import { withTimeout } from '../../../src/core/domain/timing.ts';

afterEach(() => vi.restoreAllMocks());

const hangs = (): Promise<never> => new Promise(() => {});
const late = (): Error => new Error('late');

it('a call fails and its signal is aborted when the time is up, not earlier', async () => {
  const began = performance.now();
  let aborted: AbortSignal | undefined;
  const call = (signal: AbortSignal): Promise<never> => {
    aborted = signal;
    return hangs();
  };
  await expect(withTimeout(330, call, late)).rejects.toThrow('late');
  expect(aborted?.aborted).toBe(true);
  expect(performance.now() - began).toBeGreaterThan(325);
});

it('time in which the machine was suspended counts towards the time-out', async () => {
  const call = withTimeout(3_600_000, hangs, late);
  const { now } = Date;
  vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
  await expect(call).rejects.toThrow('late');
});

it('a call whose time is up already ends without a warning of Node', async () => {
  const warned: string[] = [];
  const note = ({ name }: Error): void => void warned.push(name);
  process.on('warning', note);
  await expect(withTimeout(-5, hangs, late)).rejects.toThrow('late');
  await new Promise(setImmediate);
  process.off('warning', note);
  expect(warned).toEqual([]);
});
