import type { ListedLocation, ShownLocation } from '../wire.ts';
import { sum } from '../parts/series.ts';

const HOUR = 3_600_000;
/** Time without webhooks that is unusual: an hour for an open place, a day for one that was shut for the night. */
const QUIET_MS = HOUR;
const SILENT_MS = 24 * HOUR;
const MANY_ERRORS = 0.05;
/** Time in which a token counts as in use: a POS may be shut for some days. */
const LATELY_MS = 7 * 24 * HOUR;

/** Rates how long a location has been silent. */
export function silence(lastSeenAt: string | null, now: number): 'plain' | 'warn' | 'bad' {
  if (lastSeenAt === null) return 'warn';
  const ms = now - Date.parse(lastSeenAt);
  return ms > SILENT_MS ? 'bad' : ms > QUIET_MS ? 'warn' : 'plain';
}

/** The share of errors in the last hour, from 0 to 1; undefined without webhooks. */
export function errorShare({ webhooks, errors }: Pick<ListedLocation, 'webhooks' | 'errors'>): number | undefined {
  const all = sum(webhooks);
  return all === 0 ? undefined : sum(errors) / all;
}

/** Rates a location's share of errors. */
export function errorTone(location: Pick<ListedLocation, 'webhooks' | 'errors'>): 'plain' | 'warn' | 'bad' {
  const share = errorShare(location) ?? 0;
  return share >= MANY_ERRORS ? 'bad' : share > 0 ? 'warn' : 'plain';
}

/** Rates how many whole days a connection still lasts: it is renewed long before, and alerted a week before its end. */
export function connectionTone(daysLeft: number): 'good' | 'warn' | 'bad' {
  return daysLeft < 0 ? 'bad' : daysLeft < 7 ? 'warn' : 'good';
}

type Token = ShownLocation['tokens'][number];

/** Warns in a sentence about revoking a token, by the state of the others; undefined if they suffice. */
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

/** Sorts tokens: valid ones first, then the newest. */
export function inOrder(tokens: readonly Token[]): Token[] {
  return tokens.toSorted(
    (one, other) =>
      Number(other.state === 'valid') - Number(one.state === 'valid') ||
      Date.parse(other.createdAt) - Date.parse(one.createdAt),
  );
}

/** The share of errors in each five minutes; 0 without webhooks. */
export function stepShares({ webhooks, errors }: Pick<ListedLocation, 'webhooks' | 'errors'>): number[] {
  return webhooks.map((count, nth) => (count === 0 ? 0 : Math.min(1, (errors[nth] ?? 0) / count)));
}

/** Describes a row of counts in words. The last step is not over. */
export function trend(counts: readonly number[]): string {
  const most = Math.max(0, ...counts);
  if (most === 0) return 'none';
  return `at most ${most}, ${counts.at(-1) ?? 0} so far in the last`;
}
