import type { Pool } from 'pg';
import type { AttentionEvent, AttentionKind } from '../domain/attention-event.ts';
import { isHidden } from '../domain/settled-case.ts';
import { inTransaction, LOCK_ATTENTION, tryLock } from '../postgres/transactions.ts';
import { NEEDS, NEEDS_READ } from './needs-person.ts';
import {
  CHANGES,
  CONFLICTS,
  sampleAttention,
  sumUnnotified,
  UNREACHABLE,
  type SampledAttention,
} from './sample-attention.ts';

/**
 * A need that nobody has taken is told again after this time. An order usually fails after 30 minutes on hold, so half
 * of its time is left.
 */
const REMIND_MIN = 15;
/** How often a need that nobody has taken is told again at most. */
const REMINDERS = 8;
/** A need whose count changed is told again after this time at the earliest. */
const UPDATE_MIN = 15;

/** A need, before needs of one location are counted together. Times in RFC 3339. */
type Need = Pick<AttentionEvent, 'kind' | 'serviceOrderId' | 'callOutCode' | 'locationId' | 'integration'> & {
  since: string;
  count?: number;
};
type Item = Pick<
  AttentionEvent,
  'kind' | 'serviceOrderId' | 'callOutCode' | 'locationId' | 'integration' | 'count' | 'holder'
> & {
  key: string;
  /** Left out if nobody handed it over: a process of the previous version does not write it. */
  givenBy?: string;
  given?: AttentionEvent['given'];
};

const OF_ORDER: ReadonlySet<AttentionKind> = new Set(['in_doubt', 'cancel_by_phone', 'conflict', 'changed']);

const need = (kind: AttentionKind, since: string): string => `json_build_object('kind', '${kind}',
  'serviceOrderId', p.service_order_id, 'callOutCode', o.call_out_code, 'locationId', p.location_id,
  'integration', o.integration, 'since', ${since})`;
const ORDER = `LEFT JOIN LATERAL (SELECT call_out_code, integration, reason FROM orders
  WHERE service_order_id = p.service_order_id OFFSET 0) AS o ON true`;

const FIND = `
  (SELECT ${need('in_doubt', 'p.signalled_at')} AS need, now() FROM placements p ${ORDER}
   WHERE ${NEEDS.in_doubt} ORDER BY p.signalled_at DESC LIMIT ${NEEDS_READ})
  UNION ALL
  (SELECT ${need('held', 'p.signalled_at')}, now() FROM placements p ${ORDER}
   WHERE ${NEEDS.held} ORDER BY p.signalled_at DESC LIMIT ${NEEDS_READ})
  UNION ALL
  (SELECT ${need('failed', 'p.finished_at')}, now() FROM placements p ${ORDER}
   WHERE ${NEEDS.failed} ORDER BY p.finished_at DESC LIMIT ${NEEDS_READ})`;

/**
 * Compares what needs a person with what was told, and records what opened, changed and closed. One process at a time
 * does this. A need that closes before it was told is not told.
 * @param remindMin minutes after which a need that nobody has taken is told again
 * @returns whether there is something to publish
 */
export async function recordAttention(pool: Pool, remindMin = REMIND_MIN): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, LOCK_ATTENTION))) return false;
    const sample = await sampleAttention(client);
    const { rows } = await client.query<{ need: Need; now: Date }>(FIND);
    const needs = [...rows.map((row) => row.need), ...needsIn(sample)];
    const { rows: open } = await client.query<{ key: string }>(OPEN_OUTAGES);
    const outages = new Set(open.map(({ key }) => key));
    const items = itemsOf(needs, { cases: sample.cases, outages, now: rows[0]?.now.getTime() ?? Date.now() });
    const { rowCount } = await client.query(RECORD, [JSON.stringify(items), fullKinds(needs), remindMin]);
    return rowCount !== 0;
  });
}

/** The most needs of a kind that are read. */
const MOST: Partial<Record<AttentionKind, number>> = {
  conflict: CONFLICTS,
  changed: CHANGES,
  unreachable: UNREACHABLE,
};

function fullKinds(needs: readonly Need[]): AttentionKind[] {
  const counts = new Map<AttentionKind, number>();
  for (const { kind } of needs) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].flatMap(([kind, count]) => (count >= (MOST[kind] ?? NEEDS_READ) ? [kind] : []));
}

function needsIn(sample: SampledAttention): Need[] {
  const { cancelByPhone, conflicts, changed, silent, dropped, unreachable, unreachedContacts, unnotified } = sample;
  const none = { serviceOrderId: null, callOutCode: null, locationId: null, integration: null };
  const late = sumUnnotified(unnotified);
  return [
    ...cancelByPhone.map((each): Need => ({ ...none, ...each, kind: 'cancel_by_phone', since: each.requestedAt })),
    ...conflicts.map((each): Need => ({ ...none, ...each, kind: 'conflict', since: each.recordedAt })),
    ...changed.map((each): Need => ({ ...none, ...each, kind: 'changed', since: each.seenAt })),
    ...silent.map((each): Need => ({ ...none, ...each, kind: 'silent', since: each.oldestSentAt, count: each.sent })),
    ...dropped.map((each): Need => ({ ...none, ...each, kind: 'dropped', since: each.lastReceivedAt })),
    ...unreachable.map((each): Need => ({ ...none, ...each, kind: 'unreachable' })),
    ...unreachedContacts.map((each): Need => ({ ...none, ...each, kind: 'contacts', since: each.lastAt })),
    ...(late === null
      ? []
      : [{ ...none, kind: 'unnotified' as const, since: late.oldestAppliedAt, count: late.orders }]),
  ];
}

/** POS systems of one integration that do not answer are one need from `begins` locations until `ends` are left. */
const OUTAGE = { begins: 5, ends: 1 };
const outageOf = (integration: string | null): string => `unreachable/${integration}`;
const OPEN_OUTAGES = `SELECT item_key AS key FROM attention_items
  WHERE kind = 'unreachable' AND closed_at IS NULL AND about ->> 'locationId' IS NULL`;

type Case = SampledAttention['cases'][number];
/** @param about.outages the keys of those that are told as one need now @param about.now milliseconds */
type About = { cases: readonly Case[]; outages: ReadonlySet<string>; now: number };

/** A fixed order, because the same in another order would be told as a change. */
const byText = (one: object, other: object): number => JSON.stringify(one).localeCompare(JSON.stringify(other));

const givenOf = (its: Case | undefined): Pick<Item, 'givenBy'> => (its?.givenBy ? { givenBy: its.givenBy } : {});

/** A person who took one of its locations after that fell silent has the outage. If all are snoozed, it is left out. */
function outageItem(needs: readonly Need[], caseOf: (need: Need) => Case | undefined, now: number): Item[] {
  const all = needs.map((each) => ({ its: caseOf(each), since: Date.parse(each.since) }));
  if (all.every(({ its, since }) => isHidden('unreachable', its, since, now))) return [];
  const taken = all.find(({ its, since }) => its?.holder && Date.parse(its.takenAt ?? '') >= since);
  const integration = needs[0]?.integration ?? null;
  const none = { serviceOrderId: null, callOutCode: null, locationId: null };
  const about = { integration, count: needs.length, holder: taken?.its?.holder ?? null, ...givenOf(taken?.its) };
  return [{ key: outageOf(integration), kind: 'unreachable', ...none, ...about }];
}

/** Leaves out what is snoozed or settled, and counts the needs of a location together. */
export function itemsOf(all: readonly Need[], { cases, outages, now }: About): Item[] {
  const byId = new Map(cases.map((each) => [`${each.kind} ${each.id}`, each]));
  const silent = Map.groupBy(all, ({ kind, integration }) => (kind === 'unreachable' ? integration : null));
  silent.delete(null);
  const ofOutages = [...silent].flatMap(([integration, of]) =>
    of.length > OUTAGE.ends && (of.length >= OUTAGE.begins || outages.has(outageOf(integration))) ? [of] : [],
  );
  const caseOf = ({ locationId }: Need): Case | undefined => byId.get(`location ${locationId}`);
  const items = new Map(ofOutages.flatMap((of) => outageItem(of, caseOf, now)).map((item) => [item.key, item]));
  const isCounted = new Set(ofOutages.flat());
  const needs = all.filter((each) => !isCounted.has(each));
  for (const { kind, since, count = 1, serviceOrderId, callOutCode, locationId, integration } of needs) {
    const ofOrder = serviceOrderId === null ? undefined : byId.get(`order ${serviceOrderId}`);
    const ofLocation = locationId === null ? undefined : byId.get(`location ${locationId}`);
    const isOne = OF_ORDER.has(kind);
    // Orders that are counted together may be taken care of one by one, or by their location.
    const its = serviceOrderId === null ? [ofLocation] : isOne ? [ofOrder] : [ofOrder, ofLocation];
    const at = Date.parse(since);
    if (its.some((each) => isHidden(kind, each, at, now))) continue;
    const key = `${kind} ${(isOne ? serviceOrderId : locationId) ?? ''}`.trim();
    const known = items.get(key);
    const given =
      isOne || !ofOrder?.holder || !ofOrder.givenBy || ofOrder.takenAt === null
        ? []
        : [{ callOutCode, holder: ofOrder.holder, givenBy: ofOrder.givenBy, takenAt: ofOrder.takenAt }];
    const taken = its.find((each) => each?.holder);
    const holder = taken?.holder ?? null;
    if (known === undefined) {
      const order = isOne ? { serviceOrderId, callOutCode } : { serviceOrderId: null, callOutCode: null };
      items.set(key, {
        key,
        kind,
        ...order,
        locationId,
        integration,
        count,
        holder,
        ...givenOf(taken),
        ...(given.length > 0 && { given }),
      });
    } else {
      known.count += isOne ? 0 : count;
      if (given.length > 0) known.given = [...(known.given ?? []), ...given].toSorted(byText);
      // A location's orders are taken if somebody has each of them.
      if (holder === null) {
        known.holder = null;
        delete known.givenBy;
      }
    }
  }
  return [...items.values()];
}

const CHANGED = `a.about ->> 'holder' IS DISTINCT FROM i.about ->> 'holder'
  OR (coalesce(a.about -> 'given', '[]') @> (i.about -> 'given')) IS FALSE
  OR a.about <> i.about AND a.told_at < now() - interval '${UPDATE_MIN} min'`;
const REMINDED = `a.about ->> 'holder' IS NULL AND a.reminders < ${REMINDERS}
  AND coalesce(a.reminded_at, a.opened_at) < now() - make_interval(mins => $3)`;

/** The new, changed and ended needs, from a JSON array of items. */
const RECORD = `
  WITH i AS MATERIALIZED (
    SELECT item ->> 'key' AS item_key, item ->> 'kind' AS kind, item - 'key' AS about FROM jsonb_array_elements($1::jsonb) AS item
  ), opened AS (
    INSERT INTO attention_items AS a (item_key, kind, about) SELECT item_key, kind, about FROM i
    ON CONFLICT (item_key) DO UPDATE
    SET about = excluded.about, opened_at = now(), told_at = now(), closed_at = NULL, reminders = 0,
        reminded_at = NULL, sequence = greatest(a.sequence + 1, excluded.sequence),
        -- If its end was not told yet, it goes on.
        event = CASE WHEN a.published_sequence = a.sequence OR a.lease_until IS NOT NULL THEN 'opened' ELSE 'updated' END
    WHERE a.closed_at IS NOT NULL
    RETURNING item_key
  ), updated AS (
    UPDATE attention_items a
    SET about = i.about, told_at = now(), sequence = a.sequence + 1,
        reminders = a.reminders + CASE WHEN ${REMINDED} THEN 1 ELSE 0 END,
        reminded_at = CASE WHEN ${REMINDED} THEN now() ELSE a.reminded_at END,
        -- While an event is being published, it may have been told.
        event = CASE WHEN a.event = 'opened' AND a.published_sequence < a.sequence AND a.lease_until IS NULL
                     THEN 'opened' ELSE 'updated' END
    FROM i WHERE a.item_key = i.item_key AND a.closed_at IS NULL AND (${CHANGED} OR ${REMINDED})
    RETURNING a.item_key
  ), closed AS (
    UPDATE attention_items a
    SET closed_at = now(), told_at = now(), event = 'closed', sequence = a.sequence + 1,
        published_sequence = CASE WHEN a.event = 'opened' AND a.published_sequence < a.sequence AND a.lease_until IS NULL
                                  THEN a.sequence + 1 ELSE a.published_sequence END
    -- A list that is full does not show what ended.
    WHERE a.closed_at IS NULL AND NOT a.kind = ANY ($2::text[]) AND NOT EXISTS (SELECT FROM i WHERE i.item_key = a.item_key)
    RETURNING a.item_key
  ), forgotten AS (
    DELETE FROM attention_items WHERE closed_at < now() - interval '7 d' AND published_sequence = sequence
  )
  SELECT FROM opened UNION ALL SELECT FROM updated UNION ALL SELECT FROM closed`;

/** SQL of an event from a row `k` of `attention_items`, see `publishRows`. Its sentence and URL are added later. */
export const ATTENTION_ROW = `jsonb_build_object('event', k.event, 'at', k.told_at, 'id', k.item_key, 'openedAt', k.opened_at,
  'closedAt', k.closed_at, 'reminders', k.reminders, 'sequence', k.sequence,
  'locationName', (SELECT name FROM locations WHERE location_id = k.about ->> 'locationId')) || k.about`;

type Told = Omit<AttentionEvent, 'sentence' | 'url' | 'givenBy' | 'given'> & Pick<Item, 'givenBy' | 'given'>;
export type AttentionRow = Told & { locationName: string | null };
/** @param place the name of the location @param vendor the name of the vendor */
type Sentence = (told: Told, place: string, vendor: string) => string;

const SENTENCES: Readonly<Record<AttentionKind, Sentence>> = {
  in_doubt: ({ callOutCode }, place) => `Is order ${callOutCode} at the POS of ${place}? We do not send it twice.`,
  cancel_by_phone: ({ callOutCode }, place) => `Cancel order ${callOutCode} at ${place} by phone.`,
  conflict: ({ callOutCode }, place) =>
    `The POS of ${place} contradicts itself or what the member of order ${callOutCode} was told. Check the order at the POS.`,
  changed: ({ callOutCode }, place) =>
    `Order ${callOutCode} changed after it was sent to ${place}. The ticket is unchanged. Tell the restaurant, then enter its answer.`,
  failed: ({ count }, place) => `${orders(count)} of ${place} failed today. Call the members if necessary.`,
  held: ({ count }, place) => `${orders(count)} of ${place} on hold: something has to be fixed.`,
  silent: ({ count }, place) =>
    `${place} has ${count} tickets and has sent nothing since. Call the restaurant, or make a token if its POS has none.`,
  dropped: ({ count }, place) => `${count} webhooks of ${place} were dropped. Fix the reason, then replay them.`,
  unreachable: ({ locationId, count }, place, vendor) =>
    locationId === null
      ? `The POS systems of ${count === UNREACHABLE ? 'at least ' : ''}${count} locations with ${vendor} do not answer. Call the vendor.`
      : `The POS of ${place} does not answer. Call the restaurant.`,
  contacts: ({ count }, place) =>
    `${count} messages to contacts of ${place} were given up. Call the restaurant, and correct its contacts.`,
  unnotified: ({ count }) =>
    `Members of ${orders(count)} are not notified: their messages wait. See: expediter live show`,
};
const orders = (count: number): string => `${count} ${count === 1 ? 'order' : 'orders'}`;

/** @param consoleUrl the base URL of the console @param vendorName what people call an integration */
export function attentionEvent(
  { locationName, ...told }: AttentionRow,
  consoleUrl: string | undefined,
  vendorName: (integration: string) => string,
): AttentionEvent {
  const { event, kind, serviceOrderId, locationId, integration, reminders, count, holder } = told;
  const { givenBy = null, given = [] } = told;
  const page =
    serviceOrderId === null
      ? locationId === null
        ? ''
        : `locations/${encodeURIComponent(locationId)}`
      : `orders/${encodeURIComponent(serviceOrderId)}`;
  const whose = (): string => {
    if (given.length > 0 && count > 1)
      return `${given.map((each) => `${each.givenBy} gave ${each.callOutCode ?? 'one'} to ${each.holder}`).join(', ')}: `;
    if (holder === null) return reminders > 0 ? 'Nobody has taken it yet: ' : '';
    return `${givenBy === null ? `${holder} has it` : `${givenBy} gave it to ${holder}`}: `;
  };
  const isPartOf = kind === 'unreachable' && locationId !== null ? ', or is one of an outage now' : '';
  const sentence = event === 'closed' ? `This needs nobody any more${isPartOf}: ` : whose();
  return {
    ...told,
    givenBy,
    given,
    sentence: `${sentence}${SENTENCES[kind](told, locationName ?? locationId ?? 'no location', vendorName(integration ?? ''))}`,
    url: consoleUrl === undefined ? null : `${consoleUrl}/console/${page}`,
  };
}
