import type { Pool } from 'pg';
import { databaseClock } from '../core/postgres/database-clock.ts';
import type { AskedPlatform } from './ask-platform.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, skipped } = reporterOf('clock');
const OFF_S = 2;
/** Seconds that an HTTP date may lag: it has whole seconds, rounded down. */
const HTTP_DATE_S = 1;

/**
 * Compares Postgres's clock with others. The service uses only Postgres's, also to verify and make signatures; the
 * others show whether it is right.
 */
export async function examineClock(pool: Pool, asked: Promise<AskedPlatform>): Promise<Finding[]> {
  const fromPlatform = asked.catch(() => undefined);
  const clock = databaseClock(pool);
  await clock.follow();
  const machineS = (Date.now() - clock.now().getTime()) / 1000;
  return [compare('this machine', machineS, OFF_S), platform(await fromPlatform, clock.now)];
}

function platform(asked: AskedPlatform | undefined, now: () => Date): Finding {
  const { answer = '', askedAt = 0, answeredAt = 0 } = asked ?? {};
  const date = typeof answer === 'string' ? Number.NaN : Date.parse(answer.headers.get('date') ?? '');
  if (Number.isNaN(date)) return skipped('ordering platform', 'it does not tell the time');
  const sinceAsked = performance.now() - (askedAt + answeredAt) / 2;
  const off = (date + (HTTP_DATE_S * 1000) / 2 - (now().getTime() - sinceAsked)) / 1000;
  return compare('ordering platform', off, OFF_S + HTTP_DATE_S);
}

function compare(whose: string, offS: number, most: number): Finding {
  const found = `${Math.abs(offS).toFixed(1)} s ${offS < 0 ? 'behind' : 'ahead of'} Postgres`;
  if (Math.abs(offS) <= most) return ok(whose, found);
  return warning(
    whose,
    found,
    "see which clock is wrong (NTP); if it is Postgres's, signed webhooks are dropped as too old",
  );
}
