import type { ListedLocation, ShownLocation } from '../wire.ts';
import { errorShare } from './find-locations.ts';

const HOUR = 3_600_000;
/** A place that is open is heard of within the hour; one that was shut for the night, within the day. */
const QUIET_MS = HOUR;
const SILENT_MS = 24 * HOUR;
const MANY_ERRORS = 0.05;
/** A POS that was shut for some days still has its token. */
const LATELY_MS = 7 * 24 * HOUR;

/** Whether to look at when a location was heard of last. */
export function silence(lastSeenAt: string | null, now: number): 'plain' | 'warn' | 'bad' {
  if (lastSeenAt === null) return 'warn';
  const ms = now - Date.parse(lastSeenAt);
  return ms > SILENT_MS ? 'bad' : ms > QUIET_MS ? 'warn' : 'plain';
}

/** Whether to look at what share of its webhooks came to nothing. */
export function errorTone(location: Pick<ListedLocation, 'webhooks' | 'errors'>): 'plain' | 'warn' | 'bad' {
  const share = errorShare(location) ?? 0;
  return share >= MANY_ERRORS ? 'bad' : share > 0 ? 'warn' : 'plain';
}

type Token = ShownLocation['tokens'][number];

/** What whoever revokes a token has to know of the others, in a sentence; undefined where they carry on without it. */
export function lostWith(tokenId: string, tokens: readonly Token[], now: number): string | undefined {
  const valid = tokens.filter(({ state }) => state === 'valid');
  const token = valid.find((each) => each.tokenId === tokenId);
  if (token === undefined) return undefined;
  const others = valid.filter((each) => each !== token);
  if (others.length === 0) {
    return 'It is the only valid token: until the POS has another one, nothing that it reports gets through.';
  }
  if (usedLately(token, now) && !others.some((each) => usedLately(each, now))) {
    return (
      'It is the only valid token that was used in the last seven days. If the POS was not given another one yet, ' +
      'nothing that it reports will get through.'
    );
  }
  return undefined;
}

function usedLately({ lastUsedAt }: Token, now: number): boolean {
  return lastUsedAt !== null && now - Date.parse(lastUsedAt) <= LATELY_MS;
}

/** What opens something first, the newest of it first. */
export function inOrder(tokens: readonly Token[]): Token[] {
  return tokens.toSorted(
    (one, other) =>
      Number(other.state === 'valid') - Number(one.state === 'valid') ||
      Date.parse(other.createdAt) - Date.parse(one.createdAt),
  );
}

/** What share of each five minutes' webhooks came to nothing; none where none came. */
export function stepShares({ webhooks, errors }: Pick<ListedLocation, 'webhooks' | 'errors'>): number[] {
  return webhooks.map((count, nth) => (count === 0 ? 0 : Math.min(1, (errors[nth] ?? 0) / count)));
}

/** What one sees of a row of counts at a glance; the last one is of a step under way. */
export function trend(counts: readonly number[]): string {
  const most = Math.max(0, ...counts);
  if (most === 0) return 'none';
  return `at most ${most}, ${counts.at(-1) ?? 0} so far in the last`;
}
