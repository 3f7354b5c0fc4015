import { text } from 'node:stream/consumers';
import { z } from 'zod';
import {
  CancellationConcluded,
  CancellationRequested,
  concludeByPhone,
  requestCancellation,
} from '../core/cancellations/operator-cancellations.ts';
import { answerChange, ChangeAnswered } from '../core/cancellations/answer-change.ts';
import { Id } from '../core/domain/order.ts';
import { traceId } from '../core/domain/trace-id.ts';
import { ListedOrders, listOrders } from '../core/orders/list-orders.ts';
import { recordAtOrders } from '../core/operators/audit.ts';
import { Typed } from '../core/domain/typed.ts';
import { OrderStory, orderTimeline } from '../core/orders/order-timeline.ts';
import { readChanges, readContents, readOrdered } from '../core/orders/read-contents.ts';
import { Found, FoundOrders, search, searchMember } from '../core/orders/search.ts';
import { archiveStore } from '../core/retention/archive-store.ts';
import { showOrder, withoutMemberData } from '../core/orders/show-order.ts';
import { Resolved, resolveNotThere, resolveThere } from '../core/placements/resolve-doubt.ts';
import { Retried, retryPlacement } from '../core/placements/retry-placement.ts';
import { operation, type Operation } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { foundInWords, orderInWords, ordersTable } from './order-text.ts';
import {
  AnswerChange,
  ConcludeCancel,
  OrderParams,
  OrderQuery,
  OrdersQuery,
  Resolve,
  optionsOf,
  pagingOptions,
} from './requests.ts';
import { LATE_MIN } from '../core/domain/settled-case.ts';

const list = operation({
  id: 'listOrders',
  access: { role: 'viewer', of: 'list' },
  api: {
    route: 'GET /orders',
    summary: 'Orders by their first signal, newest first',
    description: 'The list has no member data.',
    output: ListedOrders,
    answer: 'A page of orders.',
  },
  query: OrdersQuery,
  async run({ pool, within }, { location, group: _group, limit, cursor, ...filter }) {
    const found = await listOrders(pool, { ...filter, locations: within(location) }, { after: cursor, limit });
    if (found === undefined) throw new NotDone(400, 'The cursor is not the `next` of a page.');
    return found;
  },
  print: ({ orders }) => ordersTable(orders),
  command: {
    name: 'order list',
    about: 'list orders by their first signal, newest first, without member data',
    options: [
      ...optionsOf(OrdersQuery, '--location <id>', '--group <name>', '--integration <name>', '--state <state>'),
      {
        flags: '--needs-operator',
        about: 'only orders that are held, in doubt, changed or to be cancelled, and wait for a person',
      },
      { flags: '--late', about: `only open orders that are late by ${LATE_MIN} minutes or more` },
      { flags: '--open', about: 'only orders that have not ended' },
      ...optionsOf(OrdersQuery, '--status <status>', '--member-state <state>', '--since <when>', '--until <when>'),
      ...pagingOptions('orderId'),
    ],
    examples: [
      'expediter order list --needs-operator',
      'expediter order list --location club-1 --open --since 3h',
      'expediter order list --state failed --since 2027-01-31T18:00:00Z --json',
    ],
    read: ({ needsOperator, late, ...typed }) => ({
      ...typed,
      ...(needsOperator === true && { needs: 'operator' }),
      ...(late === true && { needs: 'late' }),
    }),
    rows: 'orders',
  },
});

const show = operation({
  id: 'showOrder',
  access: {
    role: 'viewer',
    of: 'order',
    reveals: { action: 'read contents', when: ({ contents }) => String(contents) === 'true' },
  },
  api: {
    route: 'GET /orders/:serviceOrderId',
    summary: 'One order with everything that happened to it',
    description:
      'The answer has the placement, attempts, POS ids, history, webhooks, live messages and what operators did. ' +
      '`timeline` has all of these in one list. `droppedSince` counts the webhooks that were dropped at the ' +
      "order's location since the order's last change. One of these webhooks may be about the order.",
    output: OrderStory,
    answer: 'The order.',
  },
  params: OrderParams,
  query: OrderQuery,
  reads: ['ARCHIVE_URL'],
  async run({ pool, by, config: { ARCHIVE_URL } }, { serviceOrderId, contents = false, ordered = false }) {
    const found = await showOrder(
      pool,
      serviceOrderId,
      ARCHIVE_URL === undefined ? undefined : archiveStore(ARCHIVE_URL),
    );
    if (found === undefined) return undefined;
    // A command's user can read the database anyway, so they also see the POS's reason and the tracking link, which may
    // contain member data.
    const shown = contents || by.kind === 'command_line' ? found : withoutMemberData(found);
    return {
      ...shown,
      traceId: traceId(serviceOrderId),
      timeline: orderTimeline(shown),
      ...(ordered && { ordered: await readOrdered(pool, serviceOrderId) }),
      ...(contents && {
        changesInFull: await readChanges(pool, serviceOrderId),
        contents: await readContents(pool, serviceOrderId),
      }),
    };
  },
  print: orderInWords,
  command: {
    name: 'order show',
    about: 'show one order without its member: placement, attempts, POS ids, history, webhooks, live messages, actions',
    examples: ['expediter order show order-4711'],
  },
});

const retry = operation({
  id: 'retryOrder',
  access: { role: 'operator', of: 'order', does: 'retry' },
  api: {
    route: 'POST /orders/:serviceOrderId/retry',
    summary: 'Try a placement now',
    description:
      'Use this for a placement that waits or is held, or that failed before its order could be read. Any other ' +
      'failure is final: the platform must place a new order.',
    output: Retried,
    answer: 'The placement is tried now.',
    refuses: [409],
  },
  params: OrderParams,
  wakes: true,
  run: ({ pool }, { serviceOrderId }) => retryPlacement(pool, serviceOrderId),
  print: ({ retry: how }, { serviceOrderId: id }) =>
    `${id} ${how === 'due' ? 'is due now' : 'is being tried at this moment'}; see: expediter order show ${id}`,
  command: {
    name: 'order retry',
    about: 'try a waiting or held placement now. A failed placement is final, unless its order was never read',
    examples: ['expediter order retry order-4711'],
  },
});

const resolve = operation({
  id: 'resolveOrder',
  access: { role: 'operator', of: 'order', does: 'resolve' },
  api: {
    route: 'POST /orders/:serviceOrderId/resolve',
    summary: 'Say whether the POS has the ticket of an order in doubt',
    description:
      'If the ticket is there, the order continues. If not, the order is sent again, or withdrawn if it is to ' +
      'be cancelled.',
    output: Resolved,
    answer: 'The order continues.',
    refuses: [409],
  },
  params: OrderParams,
  body: Resolve,
  wakes: true,
  run: async ({ pool }, { serviceOrderId, ...seen }) =>
    seen.there ? await resolveThere(pool, serviceOrderId, seen) : await resolveNotThere(pool, serviceOrderId),
  print({ serviceOrderId: id, state, ...about }) {
    if (state === 'withdrawn') return `${id} is withdrawn, because it was to be cancelled`;
    if ('late' in about && about.late) return `${id} is past its deadline: it fails now, and its member is notified`;
    if (state === 'waiting') return `${id} is due now; see: expediter order show ${id}`;
    const redriven = 'redriven' in about ? about.redriven : 0;
    return `${id} is sent${redriven > 0 ? `; ${redriven} events that waited for it were applied` : ''}`;
  },
  command: {
    name: 'order resolve',
    about: 'say whether the POS has the ticket of an order in doubt',
    options: [
      {
        flags: '--there',
        about: 'the POS has the ticket. The order then counts as sent, and the member is notified',
        conflicts: 'notThere',
      },
      {
        flags: '--pos-id <id>',
        about: "the ticket's id at the POS, with --there. Webhooks that waited for this id are applied",
        conflicts: 'notThere',
      },
      {
        flags: '--not-there',
        about:
          'the POS has no ticket, a minute after the last call. The order is sent again, or fails if it is too late',
      },
    ],
    examples: [
      'expediter order resolve order-4711 --there --pos-id 8F2K',
      'expediter order resolve order-4711 --there',
      'expediter order resolve order-4711 --not-there',
    ],
    read({ serviceOrderId, there, posId, notThere }) {
      if (there !== true && notThere !== true) {
        throw new NotDone(400, 'Say what you saw at the POS: --there (with --pos-id if you know it) or --not-there.');
      }
      return { serviceOrderId, there: there === true, ...(posId !== undefined && { providerOrderId: posId }) };
    },
  },
});

const conclude = operation({
  id: 'concludeCancel',
  access: { role: 'operator', of: 'order', does: 'conclude cancel' },
  api: {
    route: 'POST /orders/:serviceOrderId/cancel/conclude',
    summary: 'Say whether the restaurant cancelled an order on the telephone',
    description: 'If the restaurant cancelled the order, the member is notified. If not, the order continues.',
    output: CancellationConcluded,
    answer: 'The cancellation has ended.',
    refuses: [409],
  },
  params: OrderParams,
  body: ConcludeCancel,
  wakes: true,
  run: ({ pool }, { serviceOrderId, cancelled }) => concludeByPhone(pool, serviceOrderId, cancelled),
  print: (_, { serviceOrderId: id, cancelled }) =>
    cancelled ? `${id} is cancelled, and its member is notified` : `${id} continues`,
});

const CANCEL = {
  withdraws: 'is withdrawn, and not sent',
  asks_pos: 'is to be cancelled, and its POS is asked',
  under_way: 'is being cancelled at this moment',
};

const cancel = operation({
  id: 'cancelOrder',
  access: { role: 'operator', of: 'order', does: 'cancel' },
  api: {
    route: 'POST /orders/:serviceOrderId/cancel',
    summary: 'Cancel an order',
    description:
      'An order that was not sent is withdrawn (`withdraws`). Otherwise the POS is asked, again if needed ' +
      '(`asks_pos`). The order is then cancelled only when the POS confirms.',
    output: CancellationRequested,
    answer: 'The order is being cancelled.',
    refuses: [409],
  },
  params: OrderParams,
  wakes: true,
  run: ({ pool }, { serviceOrderId }) => requestCancellation(pool, serviceOrderId),
  print: ({ cancel: how }, { serviceOrderId: id }) => `${id} ${CANCEL[how]}; see: expediter order show ${id}`,
  command: {
    name: 'order cancel',
    about: 'cancel an order at its POS, or say whether the restaurant cancelled it on the telephone',
    options: [
      {
        flags: '--by-phone <said>',
        about: 'what the restaurant said, if "order show" says by phone. The POS is not asked',
        choices: ['cancelled', 'refused'],
      },
    ],
    examples: ['expediter order cancel order-4711', 'expediter order cancel order-4711 --by-phone cancelled'],
    read: ({ serviceOrderId, byPhone }) =>
      byPhone === undefined
        ? { serviceOrderId }
        : { operation: conclude, input: { serviceOrderId, cancelled: byPhone === 'cancelled' } },
  },
});

const answer = operation({
  id: 'answerChange',
  access: { role: 'operator', of: 'order', does: 'answer change' },
  api: {
    route: 'POST /orders/:serviceOrderId/change/answer',
    summary: "Say whether the restaurant applied the platform's change of an order",
    description: 'The platform is notified. Nothing is changed at the POS. A later change is asked about again.',
    output: ChangeAnswered,
    answer: 'The answer is stored.',
    refuses: [409],
  },
  params: OrderParams,
  body: AnswerChange,
  wakes: true,
  run({ pool, note }, { serviceOrderId, ...said }) {
    note(said.answer);
    return answerChange(pool, serviceOrderId, said);
  },
  print: ({ change }, { serviceOrderId: id }) =>
    `the change of ${id} is ${change.replace('_', ' ')}, and the platform is notified`,
  command: {
    name: 'order answer',
    about: "say whether the restaurant applied the platform's change of an order that it has",
    options: [
      {
        flags: '--change <said>',
        about: 'what the restaurant said about the newest change',
        choices: AnswerChange.shape.answer.options,
        required: true,
      },
    ],
    examples: [
      'expediter order answer order-4711 --change done',
      'expediter order answer order-4711 --change too_late',
    ],
    read: ({ serviceOrderId, change }) => ({ serviceOrderId, answer: change }),
  },
});

const findByMember = operation({
  id: 'searchMember',
  // The audit does not have the text, which is about a member.
  access: { role: 'member-data', of: 'list', does: 'search member' },
  api: {
    route: 'POST /search/member',
    summary: 'The newest orders of one member',
    description:
      'The text is the name of the member or words of it, the telephone number as it is dialled in its country or ' +
      'abroad, the e-mail address, or the id. Orders whose member is erased are not found. The audit records the search ' +
      'without the text, also at each location of an order that was found.',
    output: FoundOrders,
    answer: 'At most 10 orders, newest first.',
  },
  body: z
    .strictObject({
      text: Typed(255).meta({ description: 'What to find.' }),
      location: Id.optional().meta({ description: 'Only orders at this location.' }),
    })
    .meta({ examples: [{ text: '+4930123456' }] }),
  async run({ pool, by, within, note }, { text, location }) {
    const found = await searchMember(pool, text, within(location));
    const ids = found.orders.map(({ serviceOrderId }) => serviceOrderId);
    await recordAtOrders(pool, by, 'search member', ids);
    note(`found ${found.orders.length}`);
    return found;
  },
  print: ({ orders }) => foundInWords({ orders, locations: [], webhooks: [] }),
});

const Sought = z.strictObject({ q: Typed(255).meta({ description: 'What to find.', examples: ['K472'] }) });

const findByBody = operation({
  id: 'searchByBody',
  access: { role: 'viewer', of: 'list', onlyReads: true },
  api: {
    route: 'POST /search',
    summary: 'The same as `GET /search`, with the text in the body',
    description:
      'For a text that a person typed: it may be about a member, and URLs are in logs. It does not find the orders of a ' +
      'member: see `POST /search/member`.',
    output: Found,
    answer: 'At most 10 of each, orders newest first.',
  },
  body: Sought.extend({ location: Id.optional().meta({ description: 'Only what belongs to this location.' }) }),
  run: ({ pool, within }, { q, location }) => search(pool, q, within(location)),
});

const find = operation({
  id: 'search',
  access: { role: 'viewer', of: 'list' },
  api: {
    route: 'GET /search',
    summary: 'Find orders, locations and webhooks by what people read to each other',
    description:
      'Finds orders by call-out code, id or POS id, locations by the beginning of their id or a part of their name, and a webhook by ' +
      'its id. Never send data of a member here: see `POST /search`.',
    output: Found,
    answer: 'At most 10 of each, orders newest first.',
  },
  query: Sought,
  run: ({ pool, within }, { q }) => search(pool, q, within()),
  print: foundInWords,
  command: {
    name: 'order find',
    about: 'find orders by call-out code, id or POS id, locations by id or name, and webhooks by id',
    argument: { flags: '<text>', about: 'the text; with --member, - reads it from standard input', field: 'q' },
    options: [
      {
        flags: '--member',
        about: "the text is a member's name or words of it, telephone number, e-mail address or id",
      },
    ],
    examples: ['expediter order find K472', 'expediter order find - --member < member.txt'],
    read: async ({ q, member }) =>
      member === true
        ? { operation: findByMember, input: { text: q === '-' ? (await text(process.stdin)).trim() : q } }
        : { q },
  },
});

export const ORDER_OPERATIONS: readonly Operation[] = [
  list,
  find,
  findByBody,
  findByMember,
  show,
  retry,
  resolve,
  cancel,
  conclude,
  answer,
];
