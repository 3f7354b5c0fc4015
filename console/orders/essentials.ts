import type { ShownOrder } from '../wire.ts';
import type { Line } from './story-lines.ts';

/** A line with the notification that it caused. */
export type Essential = Line & { notified?: Line };

/** A notification that comes this long after its cause, or later, has its own line. */
const AT_ONCE_MS = 10_000;
/** Shorter waits are not shown. */
const SHORT_MS = 1_000;

/**
 * Selects the lines that matter to an operator. Leaves out successful calls, webhooks (their statuses have lines),
 * known statuses and published messages. Attaches a notification to the line that caused it.
 */
export function essentials(lines: readonly Line[], { live }: Pick<ShownOrder, 'live'>): Essential[] {
  const notifications = lines.filter(({ what }) => what === 'notified');
  const selected: Essential[] = lines.filter((line) => !isMachinery(line)).map(withoutNumber);
  for (const line of notifications) {
    const state = live.find(({ sequence }) => sequence === line.sequence)?.memberState;
    const source = selected.find(
      (each) =>
        each.notified === undefined &&
        Math.abs(Date.parse(each.at) - Date.parse(line.at)) < AT_ONCE_MS &&
        (each.what === 'status'
          ? each.sequence === line.sequence
          : (each.what === 'signalled' && state === 'placed') ||
            (each.what === 'placement finished' && (state === 'sent' || state === 'cancelled'))),
    );
    if (source === undefined) selected.push(withoutNumber(line));
    else source.notified = withoutNumber(line);
  }
  return selected
    .toSorted((a, b) => a.nth - b.nth)
    .map((line, i, all) => ({ ...line, waitMs: since(line, all[i - 1]) }));
}

const MACHINERY: ReadonlySet<Line['what']> = new Set(['published', 'webhook', 'replay', 'notified']);

function isMachinery({ what, tone, isKnown }: Line): boolean {
  // A warning means that a part of the order was left out.
  if (what === 'fetched') return tone !== 'warn';
  if (what === 'call began') return tone !== 'busy';
  if (what === 'call ended') return tone === 'good';
  return isKnown === true || MACHINERY.has(what);
}

function withoutNumber<L extends Line>(line: L): L {
  return { ...line, more: line.more.filter((each) => each !== `message ${line.sequence}`) };
}

/** Time since the previous selected line. Undefined if short. */
function since(line: Line, before: Line | undefined): number | undefined {
  const ms = before === undefined ? 0 : Date.parse(line.at) - Date.parse(before.at);
  return ms < SHORT_MS ? undefined : ms;
}
