import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { now } from './clock.ts';
import { duration } from './duration.ts';

const SHORT = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const LONG = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

/** An instant in the reader's time zone, with the date unless it is today. The full time is shown on hover. */
export function Time({ at }: { at: string }) {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return (
    <time dateTime={at} title={LONG.format(date)} translate={false}>
      {isToday ? '' : `${DAY.format(date)}, `}
      {SHORT.format(date)}
    </time>
  );
}

/** The time since an instant, updated live. @param isBrief for little space */
export function Ago({ at, isBrief = false }: { at: string; isBrief?: boolean }) {
  const date = new Date(at);
  // The text is a signal, so hundreds of these on a page cost nothing while their texts do not change.
  const text = useMemo(
    () =>
      computed(() => {
        const ms = now.value - Date.parse(at);
        if (isBrief) return ms < 10_000 ? 'now' : duration(ms);
        return ms < 10_000 ? 'just now' : `${duration(ms)} ago`;
      }),
    [at, isBrief],
  );
  return (
    <time dateTime={at} title={LONG.format(date)} translate={false}>
      {text}
    </time>
  );
}
