import type { ShownOrder } from '../wire.ts';
import type { Line } from './story-lines.ts';

/** A line with what the member was told of it. */
export type Essential = Line & { told?: Line };

/** Longer waits are worth a line of their own. */
const AT_ONCE_MS = 10_000;
/** Shorter waits are ours, and nobody's concern. */
const SHORT_MS = 1_000;

/**
 * The lines that tell what became of an order. How we did it is left out: the calls that went well, webhooks beside what
 * they said, what was known already, and what went out as it should. What the member was told stands beside its cause.
 */
export function essentials(lines: readonly Line[], { live }: Pick<ShownOrder, 'live'>): Essential[] {
  const told = lines.filter(({ what }) => what === 'told');
  const kept: Essential[] = lines.filter((line) => !isMachinery(line)).map(withoutNumber);
  for (const line of told) {
    const state = live.find(({ sequence }) => sequence === line.sequence)?.memberState;
    const host = kept.find(
      (each) =>
        each.told === undefined &&
        Math.abs(Date.parse(each.at) - Date.parse(line.at)) < AT_ONCE_MS &&
        (each.what === 'status'
          ? each.sequence === line.sequence
          : (each.what === 'signalled' && state === 'placed') ||
            (each.what === 'placement finished' && state === 'sent')),
    );
    if (host === undefined) kept.push(withoutNumber(line));
    else host.told = withoutNumber(line);
  }
  return kept.toSorted((a, b) => a.nth - b.nth).map((line, i, all) => ({ ...line, waitMs: since(line, all[i - 1]) }));
}

const MACHINERY: ReadonlySet<Line['what']> = new Set(['published', 'webhook', 'replay', 'told']);

function isMachinery({ what, tone, isKnown }: Line): boolean {
  // With a warning: something was left out of it.
  if (what === 'fetched') return tone !== 'warn';
  if (what === 'call began') return tone !== 'busy';
  if (what === 'call ended') return tone === 'good';
  return isKnown === true || MACHINERY.has(what);
}

function withoutNumber<L extends Line>(line: L): L {
  return { ...line, more: line.more.filter((each) => each !== `message ${line.sequence}`) };
}

/** Time since the line before that is left; undefined where it is none to speak of. */
function since(line: Line, before: Line | undefined): number | undefined {
  const ms = before === undefined ? 0 : Date.parse(line.at) - Date.parse(before.at);
  return ms < SHORT_MS ? undefined : ms;
}
