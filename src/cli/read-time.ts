import { InvalidArgumentError } from 'commander';
import { z } from 'zod';

const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const Time = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);

/**
 * Reads a time, or a distance from now into the `past` or the `future`: 3d, 2h, 30m, 45s.
 * @throws InvalidArgumentError also for a time in the past where the future is required
 */
export function readTime(text: string, when: 'past' | 'future'): Date {
  const [, count, unit = ''] = /^(\d{1,5})([smhd])$/.exec(text) ?? [];
  const distance = Number(count) * (UNIT_MS[unit] ?? 0);
  const at =
    count === undefined
      ? Date.parse(Time.safeParse(text).data ?? '')
      : Date.now() + (when === 'past' ? -distance : distance);
  if (Number.isNaN(at)) {
    const example = when === 'past' ? 'a while ago such as 3d, 2h or 30m' : 'a while such as 90d, 12h or 30m';
    throw new InvalidArgumentError(`Right would be ${example}, or a time such as 2027-01-31T18:00:00Z.`);
  }
  if (when === 'future' && at <= Date.now()) throw new InvalidArgumentError('That is not in the future.');
  return new Date(at);
}

/** The help text of an option that `readPast` reads. */
export const PAST = 'a while ago (3d, 2h, 30m, 45s), or a time (2027-01-31T18:00:00Z)';

export function readPast(text: string): Date {
  return readTime(text, 'past');
}
