import { duration } from '../parts/duration.ts';
import type { Ticket } from './ticket-of.ts';

export type Due = { words: string; tone: 'plain' | 'good' | 'warn' | 'bad' };

const MINUTE_MS = 60_000;
/** An order is highlighted from this long before its due time. */
const SOON_MS = 10 * MINUTE_MS;

/** Describes the due time. Undefined if there is none, or if the order ended without pickup or delivery. */
export function due({ dueAt, fulfilledAt, endedAt }: Ticket, now: number): Due | undefined {
  if (dueAt === null) return undefined;
  if (fulfilledAt !== null) return punctuality(fulfilledAt - dueAt);
  if (endedAt !== null) return undefined;
  const left = dueAt - now;
  if (left <= -MINUTE_MS) return { words: `overdue ${minutes(-left)}`, tone: 'bad' };
  if (left < MINUTE_MS) return { words: 'due now', tone: 'warn' };
  return { words: `due in ${minutes(left)}`, tone: left <= SOON_MS ? 'warn' : 'plain' };
}

/** How long the order has been open: from the signal until now, or until its end. */
export function age({ signalledAt, endedAt }: Ticket, now: number): string {
  return briefly((endedAt ?? now) - signalledAt);
}

/** The time since the end. */
export function ended({ endedAt }: Ticket, now: number): string {
  return `${briefly(now - (endedAt ?? now))} ago`;
}

/** Formats a duration in seconds if it is below a minute, otherwise in minutes. */
function briefly(since: number): string {
  const ms = Math.max(0, since);
  return ms < MINUTE_MS ? `${Math.floor(ms / 1_000)} s` : minutes(ms);
}

function punctuality(late: number): Due {
  if (late >= MINUTE_MS) return { words: `${minutes(late)} late`, tone: 'warn' };
  return { words: late <= -MINUTE_MS ? `${minutes(late)} early` : 'on time', tone: 'good' };
}

/** Formats minutes for a ticket, in whole hours from two hours on. */
function minutes(ms: number): string {
  const whole = Math.floor(Math.abs(ms) / MINUTE_MS);
  return whole < 120 ? `${whole} min` : duration(Math.floor(whole / 60) * 60 * MINUTE_MS);
}
