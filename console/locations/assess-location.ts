import type { ListedLocation, ShownLocation } from '../wire.ts';
import { clockTime, dayAndTime } from '../parts/clock-time.ts';
import { sum } from '../parts/series.ts';

const HOUR = 3_600_000;
/** Unusual times without webhooks: an hour is long while a restaurant is open, a day is long even with the night. */
const QUIET_MS = HOUR;
const SILENT_MS = 24 * HOUR;
const MANY_ERRORS = 0.05;
/** A token that was used within this time counts as in use. A restaurant may be closed for some days. */
const RECENTLY_MS = 7 * 24 * HOUR;

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

/** A process of the previous version does not send what is open. */
type Counted = Pick<ListedLocation, 'webhooks' | 'errors'> & Partial<Pick<ListedLocation, 'open' | 'refused'>>;

/** The share of webhooks that are still open: dropped without a replay, or refused just now. */
export function openShare({ webhooks, open, refused = 0 }: Counted): number {
  const count = (open?.dropped ?? 0) + refused;
  return count === 0 ? 0 : count / Math.max(sum(webhooks), count);
}

/** Rates a location's errors by what is still open of them. */
export function errorTone(location: Counted): 'plain' | 'warn' | 'bad' {
  const share = openShare(location);
  return share >= MANY_ERRORS ? 'bad' : share > 0 ? 'warn' : 'plain';
}

/** Since when a location is silent that has tickets without a report, as the board says it. */
export function unreportedOf({ unreported, unreportedSince }: ListedLocation['open']): string {
  // A process of the previous version does not send the time.
  const since = unreportedSince ? ` since ${dayAndTime(unreportedSince)}` : '';
  return `${unreported} ${unreported === 1 ? 'ticket' : 'tickets'} without a report${since}`;
}

/** The orders that are on hold although the location takes orders, in words. Undefined if there are none. */
export function heldOf({ open }: Pick<ListedLocation, 'open'>): string | undefined {
  // A process of the previous version does not send it.
  const held = open?.failing ? 0 : (open?.held ?? 0);
  return held === 0 ? undefined : `${held} ${held === 1 ? 'order' : 'orders'} on hold`;
}

/** Whether something is wrong, so that somebody may take, close or snooze it. @param alarms what the board has of it */
export function isInTrouble({ closedAt, open }: Pick<ShownLocation, 'closedAt' | 'open'>, alarms: number): boolean {
  return closedAt === null && (alarms > 0 || Boolean(open?.failing) || open?.held > 0 || open?.dropped > 0);
}

/** Rates the newest orders that did not reach the POS: one may be a wrong order. */
export function failingTone({ open }: Pick<ListedLocation, 'open'>): 'plain' | 'warn' | 'bad' {
  const orders = open?.failing?.orders ?? 0;
  return orders > 1 ? 'bad' : orders === 1 ? 'warn' : 'plain';
}

/** What became of the errors of the last hour, in words. */
export function repairOf({ errors, open }: Counted, now: number): string | undefined {
  const { dropped = 0, replayedAt = null } = open ?? {};
  if (dropped > 0) return `${dropped.toLocaleString('en')} not replayed`;
  const wasRepaired = sum(errors) > 0 && replayedAt !== null && now - Date.parse(replayedAt) < HOUR;
  return wasRepaired ? `all replayed ${clockTime(replayedAt)}` : undefined;
}

/** Rates the days that a connection still lasts. It is renewed long before its end, and an alert fires a week before. */
export function connectionTone(daysLeft: number): 'good' | 'warn' | 'bad' {
  return daysLeft < 0 ? 'bad' : daysLeft < 7 ? 'warn' : 'good';
}

type Token = ShownLocation['tokens'][number];

/** What people call a token: by its label, else by when it was made. Its id is only a tooltip. */
export const tokenName = ({ label, createdAt }: Pick<Token, 'label' | 'createdAt'>): string =>
  label ?? `token of ${dayAndTime(createdAt)}`;

/** A warning about revoking a token. Undefined if another token is in use. */
export function lostWith(tokenId: string, tokens: readonly Token[], now: number): string | undefined {
  const valid = tokens.filter(({ state }) => state === 'valid');
  const token = valid.find((each) => each.tokenId === tokenId);
  if (token === undefined) return undefined;
  const others = valid.filter((each) => each !== token);
  if (others.length === 0) {
    return 'It is the only valid token. Until the POS has another one, its webhooks are rejected.';
  }
  if (usedRecently(token, now) && !others.some((each) => usedRecently(each, now))) {
    return (
      'It is the only valid token that was used in the last seven days. If the POS does not have another one yet, its ' +
      'webhooks will be rejected.'
    );
  }
  return undefined;
}

function usedRecently({ lastUsedAt }: Token, now: number): boolean {
  return lastUsedAt !== null && now - Date.parse(lastUsedAt) <= RECENTLY_MS;
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

/** Describes counts in words. The last step has not ended, so its count is called “so far”. */
export function trend(counts: readonly number[]): string {
  const most = Math.max(0, ...counts);
  if (most === 0) return 'none';
  return `at most ${most}, ${counts.at(-1) ?? 0} so far in the last`;
}
