import { explainFailure, saysOf } from '../core/domain/explain-failure.ts';
import { helpWith } from '../core/domain/explain-cause.ts';
import { inOneLine } from '../core/domain/remedy.ts';
import { facts, sections, table, tableOf, time, titled, titledTable } from '../terminal/print.ts';
import type { ListedOrder } from '../core/orders/list-orders.ts';
import type { Found } from '../core/orders/search.ts';
import type { ShownOrder } from '../core/orders/show-order.ts';
import { actsTable, notesTable } from './reading-operations.ts';

export function ordersTable(rows: readonly ListedOrder[]): string {
  return tableOf('No orders match.', rows, (row) => ({
    code: row.callOutCode,
    order: row.serviceOrderId,
    signalled: time(row.signalledAt),
    location: row.locationId,
    integration: row.integration,
    placement: `${row.placement.replace('_', ' ')}${row.needsOperator ? ': needs you' : ''}`,
    'member sees': row.memberState,
    cancel: row.endedAt === null ? row.cancellation : null,
    changed: row.changes.join('; '),
    status: row.status,
    'POS id': row.providerOrderId,
    ended: time(row.endedAt),
    problem: saysOf(row.problem) ?? (row.refreshFailure && `not fetched again: ${saysOf(row.refreshFailure.problem)}`),
  }));
}

export function foundInWords({ orders, locations, webhooks }: Found): string {
  const words = sections(
    tableOf('', orders, (each) => ({
      code: each.callOutCode,
      order: each.serviceOrderId,
      signalled: time(each.signalledAt),
      location: each.locationId,
      integration: each.integration,
      placement: each.placement.replace('_', ' '),
      'member sees': each.memberState,
    })),
    table(locations.map(({ locationId, name }) => ({ location: locationId, name }))),
    tableOf('', webhooks, ({ webhookId, locationId, receivedAt, outcome }) => ({
      webhook: webhookId,
      received: receivedAt,
      location: locationId,
      outcome,
    })),
  );
  return words === '' ? 'Nothing was found.' : words;
}

function factsOf(shown: ShownOrder): string {
  const { serviceOrderId, placement, order } = shown;
  const needsResolve = placement.state === 'in_doubt' && placement.nextAttemptAt === null;
  return facts({
    'call-out code': order?.callOutCode,
    order: serviceOrderId,
    location: order?.locationId ?? placement.locationId,
    integration: order?.integration,
    fulfillment: order?.fulfillment,
    'wanted for': time(order?.requestedAt ?? null),
    status: order?.status,
    reason: order?.reason,
    'reason code': order?.reasonCode,
    items: order?.itemIds?.join(', '),
    'estimated ready': time(order?.estimatedReadyAt ?? null),
    'estimated delivery': time(order?.estimatedDeliveryAt ?? null),
    tracking: order?.trackingUrl,
    'kitchen was busy': busyInWords(shown.attempts),
    'left out': order?.leftOut.map(({ code, path }) => `${path} (${code.replaceAll('_', ' ')})`).join(', '),
    notified: shown.notified,
    cancel: cancelInWords(shown),
    'not fetched again': failureInWords(shown.refreshFailure),
    change: changeInWords(shown),
    'changed since': [...new Set(shown.changes.flatMap(({ paths }) => paths))].join(', '),
    member: shown.memberWatching ? 'is watching' : '',
    ended: time(order?.endedAt ?? null),
    past: shown.past ? 'it can be read, but not changed' : '',
    'read from': shown.archive,
    erased: time(order?.erasedAt ?? null),
    placement: placement.state.replace('_', ' '),
    problem: withDetails(placement.problem),
    'to do': toDoOf(shown),
    'taken care of by': shown.case?.holder,
    'alarm hidden until': time(shown.snoozedUntil),
    'under way': placement.underWay ? 'a worker is placing it at this moment' : '',
    signalled: time(placement.signalledAt),
    deadline: placement.finishedAt === null ? time(placement.deadlineAt) : '',
    'next try': needsResolve
      ? `none: expediter order resolve ${serviceOrderId} --there | --not-there`
      : time(placement.nextAttemptAt),
    finished: time(placement.finishedAt),
    'POS ids': shown.posIds.map((each) => each.providerOrderId).join(', '),
  });
}

export function orderInWords(shown: ShownOrder): string {
  return sections(
    factsOf(shown),
    titledTable('Attempts', shown.attempts, (each) => ({
      attempt: each.attempt,
      call: each.call,
      started: time(each.startedAt),
      ms: each.milliseconds,
      outcome: each.outcome,
      http: each.httpStatus,
      error: withDetails(each.error),
      code: each.reasonCode,
    })),
    titledTable('History', shown.history, (each) => ({
      recorded: time(each.recordedAt),
      status: each.status,
      'at the POS': each.nativeStatus,
      outcome: each.conflict ? `${each.outcome}, conflict` : each.outcome,
      sequence: each.sequence,
      reason: each.reason,
      code: each.reasonCode,
      ready: time(each.estimatedReadyAt),
      delivery: time(each.estimatedDeliveryAt),
      webhook: each.webhookId,
    })),
    titledTable('Webhooks', shown.webhooks, (each) => ({
      webhook: each.webhookId,
      received: time(each.receivedAt),
      outcome: each.outcome,
      'replay of': each.replayOf,
      why: each.polled ? 'no webhook came: the POS was polled' : each.reason,
    })),
    titledTable('Live messages', shown.live, (each) => ({
      sequence: each.sequence,
      'member sees': each.memberState,
      applied: time(each.appliedAt),
      published: each.publishedAt === null ? `not yet, after ${each.attempts} attempts` : time(each.publishedAt),
    })),
    titledTable('Messages to the restaurant', shown.notices, (each) => ({
      created: time(each.createdAt),
      about: each.reason.replaceAll('_', ' '),
      contact: each.contact,
      by: each.via,
      outcome: each.outcome?.replace('_', ' ') ?? 'not sent yet',
      problem: withDetails(each.problem),
      answer: each.answer?.replaceAll('_', ' '),
      answered: time(each.answeredAt),
    })),
    titled('Notes', notesTable(shown.notes)),
    titled('What operators did', actsTable(shown.actions)),
  );
}

/** What happened, and for a technician what is stored of it. */
function withDetails(problem: string | null): string | null {
  const details = problem === null ? null : explainFailure(problem).details;
  return details === null ? problem : `${saysOf(problem)} (${details})`;
}

/** The first step, if the order is not at its POS or its cancellation is not complete. */
function toDoOf({ placement, order, cancellation, refreshFailure }: ShownOrder): string {
  const { state, locationId } = placement;
  const cause =
    (cancellation?.finishedAt === null ? cancellation.cause : null) ??
    (state === 'sent' || state === 'withdrawn' ? null : placement.cause) ??
    refreshFailure?.cause ??
    null;
  return inOneLine(helpWith(cause, { locationId, integration: order?.integration ?? null }));
}

function busyInWords(attempts: ShownOrder['attempts']): string {
  const minutes = attempts.findLast(({ call }) => call === 'createOrder')?.extraMinutes ?? 0;
  return minutes === 0 ? '' : `${minutes} minutes were added`;
}

function failureInWords(failure: ShownOrder['refreshFailure']): string {
  if (failure === null) return '';
  return `since ${time(failure.since)}: ${withDetails(failure.problem)}. Next try: ${time(failure.nextAttemptAt)}`;
}

function changeInWords({ serviceOrderId, change }: ShownOrder): string {
  if (change === null) return '';
  const { state, since, waits, changes } = change;
  const say = waits
    ? `. Tell the restaurant, then: expediter order answer ${serviceOrderId} --change done | too_late`
    : '';
  return [`${state.replaceAll('_', ' ')}, since ${time(since)}`, ...changes].join('; ') + say;
}

function cancelInWords({ serviceOrderId, cancellation }: ShownOrder): string {
  if (cancellation === null) return '';
  const { state, requestedBy, requestedAt, problem } = cancellation;
  const requested = `${state.replace('_', ' ')}, requested by ${requestedBy === 'expediter' ? 'Expediter' : `the ${requestedBy}`} at ${time(requestedAt)}`;
  const say =
    state === 'by_phone' ? `. Call, then: expediter order cancel ${serviceOrderId} --by-phone cancelled | refused` : '';
  return `${requested}${problem === null ? '' : `: ${withDetails(problem)}`}${say}`;
}
