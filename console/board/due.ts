import { duration } from '../parts/duration.ts';
import type { Ticket } from './ticket-of.ts';

export type Due = { words: string; tone: 'plain' | 'good' | 'warn' | 'bad' };

const MINUTE_MS = 60_000;
/** Due so soon, it had better be under way. */
const SOON_MS = 10 * MINUTE_MS;

/** How it stands against the time the member was promised; undefined when none was, or when it ended without being kept. */
export function due({ requestedAt, keptAt, endedAt }: Ticket, now: number): Due | undefined {
  if (requestedAt === null) return undefined;
  if (keptAt !== null) return kept(keptAt - requestedAt);
  if (endedAt !== null) return undefined;
  const left = requestedAt - now;
  if (left <= -MINUTE_MS) return { words: `late by ${minutes(-left)}`, tone: 'bad' };
  if (left < MINUTE_MS) return { words: 'due now', tone: 'warn' };
  return { words: `due in ${minutes(left)}`, tone: left <= SOON_MS ? 'warn' : 'plain' };
}

/** How long ago the signal came, or how long it took. */
export function age({ signalledAt, endedAt }: Ticket, now: number): string {
  return briefly((endedAt ?? now) - signalledAt);
}

/** How long ago it ended. */
export function ended({ endedAt }: Ticket, now: number): string {
  return `${briefly(now - (endedAt ?? now))} ago`;
}

/** Seconds below a minute, then minutes. */
function briefly(since: number): string {
  const ms = Math.max(0, since);
  return ms < MINUTE_MS ? `${Math.floor(ms / 1_000)} s` : minutes(ms);
}

function kept(late: number): Due {
  if (late >= MINUTE_MS) return { words: `${minutes(late)} late`, tone: 'warn' };
  return { words: late <= -MINUTE_MS ? `${minutes(late)} early` : 'on time', tone: 'good' };
}

/** Short enough for a ticket: below two hours in minutes, then in hours. */
function minutes(ms: number): string {
  const whole = Math.floor(Math.abs(ms) / MINUTE_MS);
  return whole < 120 ? `${whole} min` : duration(Math.floor(whole / 60) * 60 * MINUTE_MS);
}
