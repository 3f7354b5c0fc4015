import { afterEach, expect, it, vi } from 'vitest';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';

afterEach(() => void vi.useRealTimers());

it('an id has its time, version and variant as in the example of RFC 9562', () => {
  vi.useFakeTimers({ now: 0x017f22e279b0 });
  expect(uuidV7()).toMatch(/^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  vi.setSystemTime(1);
  expect(uuidV7()).toMatch(/^00000000-0001-7/);
});

it('ids of one moment differ, and sort before the ids of the next moment', () => {
  vi.useFakeTimers({ now: 1_795_282_200_000 });
  const ids = Array.from({ length: 1000 }, uuidV7);
  expect(new Set(ids).size).toBe(1000);
  vi.advanceTimersByTime(1);
  const next = uuidV7();
  expect(ids.every((id) => id < next)).toBe(true);
});
