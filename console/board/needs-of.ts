import { printable } from '../../src/observe/terminal-text.ts';
import { memberNotified } from '../../src/core/domain/member-notified.ts';
import { isHidden, LATE_MIN, type NeedKind } from '../../src/core/domain/settled-case.ts';
import { query } from '../api.ts';
import { dayAndTime } from '../parts/clock-time.ts';
import { isCalled, locationName, orderName, vendorName } from '../parts/names.ts';
import { words } from '../parts/tones.ts';
import type { Attention, BoardCase, BoardOrder, Care } from '../wire.ts';
import { helpWith, inShort } from '../../src/core/domain/explain-cause.ts';
import { inPlainWords, saysOf } from '../../src/core/domain/explain-failure.ts';
import { pathInWords } from '../../src/core/domain/path-in-words.ts';
import { pageOf } from '../parts/page-of.ts';
import type { Filter, Lists, NEEDY } from './create-board.ts';
import type { Ticket } from './ticket-of.ts';

/** Something that needs a person. */
export type Need = {
  /** Identifies the need across updates. */
  key: string;
  /** The page where the operator solves it. */
  href: string;
  name: string;
  /** What a person can take, close and snooze. Undefined if it is about all orders. */
  subject?: Subject;
  /** The code of the order, if it is about an order that has one. */
  code?: string | null;
  /** Who takes care of it. */
  taken?: NonNullable<Care['case']>;
  /** The number of orders, locations or webhooks that it stands for. */
  count: number;
  /** Where, and what is wrong, in a few words. */
  brief: readonly string[];
  /** The facts of `brief`, in sentences. */
  detail: string;
  /** Milliseconds since the epoch. */
  since: number;
  /** When the newest of what it stands for began, if that is later. */
  newest?: number;
};

export type Subject = { kind: 'order' | 'location'; id: string; locationId: string | null };

export type NeedGroup = {
  kind: NeedKind;
  title: string;
  tone: 'bad' | 'warn';
  /** What to do, in a few words. */
  hint: string;
  /** True if it affects all orders. */
  isWide: boolean;
  /** True if the first step is a call to the restaurant. */
  isCall: boolean;
  needs: Need[];
  /** Needs that somebody has snoozed, or whose case was closed. */
  hidden: Need[];
  /** The number of orders, locations or webhooks that are not hidden. */
  count: number;
};

/** Whether a call to the restaurant may be all that can be done: its POS is silent or does not answer, or its orders are late. */
export function isSilent({ key }: Need): boolean {
  return /^(silent|unreachable|late):/.test(key);
}

/** Title, tone and hint of each group, from the worst to the mildest. */
const GROUPS: Readonly<Record<NeedKind, readonly [title: string, tone: NeedGroup['tone'], hint: string]>> = {
  unnotified: ['Members are not being notified', 'bad', 'See which way does not take them: expediter live show'],
  unreachable: ['POS systems that do not work', 'bad', 'Call the restaurant or the vendor.'],
  in_doubt: ['In doubt', 'bad', 'Ask whether the ticket is there.'],
  cancel_by_phone: ['Cancel by phone', 'bad', 'Call, then enter the answer.'],
  conflict: ['Conflicts', 'bad', 'Ask which status is right.'],
  failed: ['Failed orders', 'bad', 'You may have to call the member.'],
  unsent: ['Maybe not at the POS', 'bad', 'It is retried. Ask what is wrong.'],
  changed: ['Changed after it was sent', 'bad', 'Call, then enter the answer.'],
  held: ['On hold', 'warn', 'Fix the cause.'],
  late: ['Late orders', 'warn', `Overdue ${LATE_MIN} min: ask when ready.`],
  left_out: ['Left out', 'warn', 'Ask the platform to correct it.'],
  silent: ['Silent locations', 'warn', 'Call the restaurant.'],
  contacts: ['Restaurants not notified', 'warn', 'Call, and correct the contact.'],
  dropped: ['Dropped webhooks', 'warn', 'Fix the reason, then replay.'],
};
/** What a POS without a valid token needs before a call helps. */
const NO_TOKEN = 'It has no token to report with. Make one.';
/** Groups for which nobody calls a restaurant. */
const NO_CALL: readonly NeedKind[] = ['unnotified', 'left_out'];

/** What the filter looks at. */
type Filtered = {
  locationId: string | null;
  integration?: string | null;
  serviceOrderId?: string;
  callOutCode?: string | null;
};

/** Lists what needs a person, within the filter and without empty groups. */
export function needsOf(
  lists: Pick<Lists, (typeof NEEDY)[number]>,
  attention: Attention | undefined,
  filter: Filter,
  now: number,
): NeedGroup[] {
  const text = filter.text.trim().toLowerCase();
  const within = <Each extends Filtered>(all: readonly Each[] = []): Each[] =>
    all.filter(
      ({ locationId, integration = null, serviceOrderId = '', callOutCode = '' }) =>
        (filter.location === '' || locationId === filter.location) &&
        (filter.integration === '' || integration === null || integration === filter.integration) &&
        (text === '' ||
          isCalled(locationId, text) ||
          `${serviceOrderId}\n${callOutCode ?? ''}`.toLowerCase().includes(text)),
    );
  const byPhone = within(attention?.cancelByPhone);
  // `cancelByPhone` lists only the newest orders, so a filtered count covers only those.
  const isFiltered = byPhone.length < (attention?.cancelByPhone.length ?? 0);

  const cases = new Map(attention?.cases.map((each) => [`${each.kind} ${each.id}`, each]));
  const found: Record<NeedKind, Need[]> = {
    unnotified: attention?.unnotified ? [ofUnnotified(attention.unnotified)] : [],
    in_doubt: lists.in_doubt.map(ofOrder),
    cancel_by_phone: byPhone.map(ofCancel),
    conflict: within(attention?.conflicts).map(ofConflict),
    failed: lists.failed.map(ofOrder),
    unsent: lists.unsent.map(ofOrder),
    changed: within(attention?.changed).map(ofChange),
    held: ofHeld(lists.held, ({ id }) => Boolean(cases.get(`order ${id}`)?.holder)),
    late: ofLate(lists.late),
    left_out: lists.left_out.map(ofLacking),
    unreachable: within(attention?.unreachable).map(ofUnreachable),
    silent: within(attention?.silent).map(ofSilent),
    // A process of the previous version does not send this list.
    contacts: within((attention as Partial<Attention> | undefined)?.unreachedContacts).map(ofUnreachedContacts),
    dropped: within(attention?.dropped).map(ofDropped),
  };
  const more = isFiltered ? 0 : (attention?.cancelByPhoneTotal ?? 0) - byPhone.length;
  return (Object.keys(GROUPS) as NeedKind[])
    .filter((kind) => found[kind].length > 0)
    .map((kind) => groupOf(kind, found[kind], { cases, now, more: kind === 'cancel_by_phone' ? more : 0 }));
}

type About = { cases: ReadonlyMap<string, BoardCase>; now: number; more: number };

/** @param about.more the number of needs that are not listed */
function groupOf(kind: NeedKind, all: readonly Need[], { cases, now, more }: About): NeedGroup {
  const [title, tone, usual] = GROUPS[kind];
  const [needs, hidden]: [Need[], Need[]] = [[], []];
  for (const need of all) {
    const { subject, since, newest = since } = need;
    const its = subject && cases.get(`${subject.kind} ${subject.id}`);
    const list = isHidden(kind, its, newest, now) ? hidden : needs;
    const { holder, takenAt, givenBy = null } = its ?? {};
    list.push(holder && takenAt ? { ...need, taken: { holder, takenAt, givenBy } } : need);
  }
  const ways = { isWide: kind === 'unnotified', isCall: !NO_CALL.includes(kind) };
  const lackAll = needs.length > 0 && needs.every(({ brief }) => brief.includes(NO_TOKEN));
  return {
    kind,
    title,
    tone,
    hint: lackAll ? 'Make a token.' : usual,
    ...ways,
    needs,
    hidden,
    count: sum(needs) + more,
  };
}

function sum(counted: readonly { count: number }[]): number {
  return counted.reduce((all, { count }) => all + count, 0);
}

function ofLocation(locationId: string, count = 1): Pick<Need, 'name' | 'href' | 'subject' | 'count'> {
  const subject = { kind: 'location', id: locationId, locationId } as const;
  return { name: locationName(locationId), href: pageOf.location(locationId), subject, count };
}

type Named = { serviceOrderId: string; locationId: string | null; callOutCode: string | null };

function ofNamed(order: Named) {
  const { serviceOrderId: id, locationId, callOutCode } = order;
  return {
    href: pageOf.order(id),
    name: orderName(order),
    subject: { kind: 'order', id, locationId },
    code: callOutCode,
    count: 1,
  } as const;
}

/** The location of an order, and what is said of it. Leaves out what is not known. */
function placeAnd({ locationId }: Pick<Named, 'locationId'>, ...facts: (string | null)[]): string[] {
  return [locationId && locationName(locationId), ...facts].filter((each) => each !== null);
}

/** Live messages that are not published. They may concern any order. */
function ofUnnotified(unnotified: NonNullable<Attention['unnotified']>): Need {
  const { messages, orders, oldestAppliedAt, serviceOrderId, stoppedAt } = unnotified;
  const why =
    stoppedAt === null
      ? 'The platform does not take them. They are sent automatically, in order, when it does.'
      : `STATUS_WEBHOOK_URL was stopped, because it failed for too long or is gone. They are sent after: expediter live resume`;
  return {
    key: 'unnotified',
    href: pageOf.order(serviceOrderId),
    name: `${many(messages, 'update')} of ${many(orders, 'order')} ${messages === 1 ? 'waits' : 'wait'}`,
    brief: [why],
    detail: why,
    count: orders,
    since: Date.parse(oldestAppliedAt),
  };
}

function ofUnreachable({ locationId, integration, since }: Attention['unreachable'][number]): Need {
  return {
    key: `unreachable:${locationId}`,
    ...ofLocation(locationId),
    brief: [`${vendorName(integration)} takes no orders`],
    detail: `${vendorName(integration)} does not answer, or answers with errors. Its orders are tried again`,
    since: Date.parse(since),
  };
}

function ofSilent({ locationId, sent, oldestSentAt, hasToken }: Attention['silent'][number]): Need {
  // A process of the previous version does not send it.
  const lack = (hasToken as boolean | undefined) === false ? [NO_TOKEN] : [];
  return {
    key: `silent:${locationId}`,
    ...ofLocation(locationId),
    brief: [`${many(sent, 'ticket')} without a report`, ...lack],
    detail: [`${many(sent, 'ticket')} sent, and the POS has sent nothing since`, ...lack].join('. '),
    since: Date.parse(oldestSentAt),
  };
}

function ofUnreachedContacts({ locationId, count, lastProblem, lastAt }: Attention['unreachedContacts'][number]): Need {
  return {
    key: `unreachedContacts:${locationId}`,
    ...ofLocation(locationId),
    brief: [lastProblem ?? many(count, 'message')],
    detail: [`${many(count, 'message')} not sent`, saysOf(lastProblem)].filter(Boolean).join(': '),
    since: Date.parse(lastAt),
  };
}

function ofDropped({ locationId, integration, count, ...last }: Attention['dropped'][number]): Need {
  const webhooks = many(count, 'webhook');
  return {
    key: `dropped:${locationId}:${integration}`,
    ...ofLocation(locationId, count),
    href: `/console/webhooks${query({ outcome: 'dropped', location: locationId })}`,
    brief: [webhooks, `of ${vendorName(integration)}`],
    detail: [`${webhooks} of ${vendorName(integration)}`, last.lastReason && inPlainWords(last.lastReason)]
      .filter(Boolean)
      .join(': '),
    // A process of the previous version sends only the last.
    since: Date.parse(last.firstReceivedAt ?? last.lastReceivedAt),
  };
}

function ofOrder({ order, id, trouble, signalledAt, endedAt, neededFrom }: Ticket): Need {
  const why = trouble === 'held' ? heldBy(order) : (inShort(order.cause) ?? saysOf(order.problem));
  const detail = placeAnd(order, problemOf(order)).join(': ');
  return {
    key: `${trouble}:${id}`,
    ...ofNamed(order),
    // Somebody may read it to the kitchen, which must not cook the order twice.
    brief: placeAnd(
      order,
      why,
      trouble === 'unsent' && order.placement === 'in_doubt' ? 'it may have the ticket' : null,
    ),
    detail: trouble === 'failed' ? `${detail.replace(/\.?$/, '.')} ${toldOf(order)}` : detail,
    since: endedAt ?? signalledAt,
    ...(trouble === 'unsent' && neededFrom !== null && { newest: neededFrom }),
  };
}

function ofConflict(conflict: Attention['conflicts'][number]): Need {
  const { serviceOrderId, status, recordedAt, webhookId } = conflict;
  return {
    // A new conflict of the same order is a new need.
    key: `conflict:${serviceOrderId}:${webhookId ?? recordedAt}`,
    ...ofNamed(conflict),
    brief: placeAnd(conflict, `POS reported ${words(status)}`),
    detail: placeAnd(conflict, `the POS reported ${words(status)}`).join(': '),
    since: Date.parse(recordedAt),
  };
}

function ofCancel(cancel: Attention['cancelByPhone'][number]): Need {
  const { serviceOrderId, providerOrderId, requestedAt } = cancel;
  const ticket = providerOrderId === null ? 'ticket id unknown' : `ticket ${printable(providerOrderId)}`;
  return {
    key: `cancel:${serviceOrderId}`,
    ...ofNamed(cancel),
    // On the telephone, an order is named by its code.
    brief: placeAnd(cancel, providerOrderId === null ? ticket : null),
    detail: `Cancel it by phone: ${placeAnd(cancel, ticket).join(', ')}`,
    since: Date.parse(requestedAt),
  };
}

function ofChange(change: Attention['changed'][number]): Need {
  const { serviceOrderId, paths, changes, seenAt } = change;
  // A process of the previous version sends, or has stored, only the fields.
  const what = (changes as string[] | undefined)?.length ? changes : paths.map(pathInWords);
  return {
    // A new change of the same order is a new need.
    key: `changed:${serviceOrderId}:${seenAt}`,
    ...ofNamed(change),
    brief: placeAnd(change, ...what),
    detail: placeAnd(change, what.join('; ')).join(': '),
    since: Date.parse(seenAt),
  };
}

/**
 * Groups held tickets by location and cause, because wrong settings usually hold all orders of a location. An order whose
 * case somebody has keeps its own line, so that they see it.
 */
function ofHeld(held: readonly Ticket[], isTaken: (ticket: Ticket) => boolean): Need[] {
  const keyOf = (ticket: Ticket): string =>
    isTaken(ticket) ? ticket.id : [ticket.order.locationId, ticket.order.cause?.code].filter(Boolean).join(':');
  return [...Map.groupBy(held, keyOf)].flatMap(([key, all]) => {
    const [newest, ...others] = all.toSorted((one, other) => other.signalledAt - one.signalledAt);
    const { locationId = null } = newest?.order ?? {};
    if (newest === undefined || others.length === 0 || locationId === null) return all.map(ofOrder);
    const orders = many(all.length, 'order');
    return {
      key: `held:${key}`,
      ...ofLocation(locationId, all.length),
      href: `/console/orders${query({ state: 'held', location: locationId })}`,
      brief: [orders, heldBy(newest.order)].filter((each) => each !== null),
      detail: [orders, problemOf(newest.order)].filter((each) => each !== null).join(': '),
      since: others.at(-1)?.signalledAt ?? newest.signalledAt,
      newest: newest.signalledAt,
    };
  });
}

/** Groups late orders by location, because one call asks for all of them. */
function ofLate(late: readonly Ticket[]): Need[] {
  return [...Map.groupBy(late, ({ order }) => order.locationId ?? '')].map(([locationId, [first, ...others]]) => {
    const { id = '', dueAt } = first ?? {};
    const since = dueAt ?? 0;
    const what = others.length === 0 ? '1 order is late' : `${others.length + 1} orders are late`;
    return {
      key: `late:${locationId}`,
      ...ofLocation(locationId, others.length + 1),
      href: others.length === 0 ? pageOf.order(id) : `/console/orders${query({ needs: 'late', location: locationId })}`,
      brief: [what],
      detail: `${what}, the first since ${dayAndTime(new Date(since).toISOString())}`,
      since,
      newest: Math.max(...[first, ...others].map((each) => each?.neededFrom ?? 0)),
    };
  });
}

/** The words of the problem: they name what has to be fixed. */
function heldBy(order: BoardOrder): string | null {
  return saysOf(order.problem) ?? inShort(order.cause) ?? null;
}

function ofLacking({ order, id, signalledAt }: Ticket): Need {
  const what = order.leftOut.map(({ code, path }) => `${pathInWords(path)} (${words(code)})`);
  return {
    key: `left_out:${id}`,
    ...ofNamed(order),
    brief: placeAnd(order, ...order.leftOut.map(({ code }) => words(code))),
    detail: placeAnd(order, `without ${what.join('; ')}`).join(': '),
    since: signalledAt,
  };
}

function toldOf({ placement, memberState, fulfillment }: BoardOrder): string {
  return memberNotified({ placement, memberState, isRead: fulfillment !== null });
}

/** The problem, with the first step of the help. */
function problemOf(order: BoardOrder): string | null {
  const [toDo] = helpWith(order.cause, { ...order, vendorName });
  return (
    [saysOf(order.problem), toDo === undefined ? null : inPlainWords(toDo.say)]
      .filter((each) => each !== null)
      .join('. ') || null
  );
}

function many(count: number, what: string): string {
  return `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
}
