import {
  POLL_OUTCOMES,
  CANCELLATION_OUTCOMES,
  REFRESH_OUTCOMES,
  type PlacementObserved,
  type SignalObserved,
} from '../core/domain/observed.ts';
import { LEFT_OUT_CODES } from '../core/domain/left-out.ts';
import type { Log } from '../core/domain/log.ts';
import { PLACEMENT_CODES } from '../core/domain/placement-cause.ts';
import { PUSH_PATH, SIGNAL_PATH } from '../core/domain/paths.ts';
import { UNKNOWN, asking, atLocation, errorType, rounded, type EventReadings } from './event.ts';

const SIGNAL_OUTCOMES = ['recorded', 'known', 'poison', 'unauthorized', 'not_recorded'];
const REFETCH_OUTCOMES = ['fetched', 'missing', 'unreadable', 'TryAgain', 'NeedsOperator', 'GiveUp'];
const CALLS = ['createOrder', 'findOrder', 'cancelOrder'];
const ATTEMPT_OUTCOMES = [
  'placed',
  'absent',
  'cancelled',
  'requested',
  'not_asked',
  'not_sent',
  'TryAgain',
  'NeedsOperator',
  'GiveUp',
  UNKNOWN,
];
const PLACEMENT_OUTCOMES = ['sent', 'failed', 'withdrawn', 'held', 'in_doubt'];

/** Upper bounds of histogram buckets in seconds, for calls that may take as long as their time-out. */
const CALL = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 10, 15, 30, 60, 120];
const PLACEMENT = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1_800, 3_600];

export const orderEvents = {
  signal: {
    log(log, observed, limited) {
      if (observed.outcome !== 'unauthorized') logSignal(log, observed);
      else limited('warn', 'further signals refused, not logged individually', () => logSignal(log, observed));
    },
    metrics: (make) => make.countEach('signals_total', 'Signals by outcome.', { outcome: SIGNAL_OUTCOMES }),
    spans(observed, { places }) {
      const { serviceOrderId, outcome, messageId, subscription, milliseconds } = observed;
      if (serviceOrderId === undefined) return [];
      const isPush = observed.from === 'push';
      const path = isPush ? PUSH_PATH : SIGNAL_PATH;
      const attributes = {
        ...places.endpoint,
        'http.route': path,
        'url.path': path,
        'http.response.status_code': 204,
        ...(isPush && {
          'messaging.system': 'gcp_pubsub',
          'messaging.operation.type': 'process',
          'messaging.operation.name': 'process',
        }),
        ...(subscription !== undefined && {
          'messaging.destination.name': subscription,
          'messaging.destination.subscription.name': subscription,
        }),
        ...(messageId !== undefined && { 'messaging.message.id': messageId }),
        'expediter.outcome': outcome,
        'expediter.request_id': observed.requestId,
      };
      const isRoot = outcome === 'recorded';
      const pushed = subscription === undefined ? 'process' : `process ${subscription}`;
      const [name, kind] = isPush ? ([pushed, 'CONSUMER'] as const) : ([`POST ${path}`, 'SERVER'] as const);
      return [[serviceOrderId, { name, kind, milliseconds, attributes, isRoot }]];
    },
  },

  claim: {
    spans({ serviceOrderId, dueAt }, { now }) {
      const milliseconds = Math.max(0, now().getTime() - Date.parse(dueAt));
      return [[serviceOrderId, { name: 'queue', kind: 'INTERNAL', milliseconds, attributes: {} }]];
    },
  },

  refetch: {
    metrics: (make) =>
      make.countEach('refetches_total', 'Orders fetched from the ordering platform.', { outcome: REFETCH_OUTCOMES }),
    spans({ serviceOrderId, outcome, milliseconds }, { places }) {
      const failed = outcome !== 'fetched' && outcome !== 'missing';
      const attributes = {
        ...places.platform,
        ...(failed && { 'error.type': outcome }),
        'expediter.outcome': outcome,
      };
      return [[serviceOrderId, { name: 'refetch', kind: 'CLIENT', milliseconds, attributes, failed }]];
    },
  },

  'past order': { log: (log, { what: _what, ...about }) => log.info(about, 'a signal about a past order was ignored') },

  'left out': {
    log: (log, { what: _what, ...about }) => log.warn(about, 'unusable parts of an order were left out'),
    metrics(make) {
      const leftOut = make.counter('order_fields_left_out_total', 'Unusable parts left out of orders, by cause.', {
        code: LEFT_OUT_CODES,
      });
      return (observed) => {
        for (const { code } of observed.leftOut) leftOut(code);
      };
    },
  },

  attempt: {
    metrics(make) {
      const labels = { integration: make.integrations, call: CALLS };
      const attempts = make.counter('placement_attempts_total', 'Calls to a POS about an order.', {
        ...labels,
        outcome: ATTEMPT_OUTCOMES,
      });
      const seconds = make.histogram('placement_call_duration_seconds', 'One call to a POS.', CALL, labels);
      return ({ integration, call, outcome, milliseconds }) => {
        attempts(integration, call, outcome);
        seconds(milliseconds / 1_000, integration, call);
      };
    },
    spans(observed) {
      const { serviceOrderId, call, outcome, httpStatus, failed, request, milliseconds } = observed;
      const attributes = {
        ...asking(request),
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(httpStatus !== undefined && { 'http.response.status_code': httpStatus }),
        ...(failed && { 'error.type': String(httpStatus ?? outcome) }),
      };
      return [[serviceOrderId, { name: call, kind: 'CLIENT', milliseconds, attributes, failed }]];
    },
  },

  placement: {
    log: logPlacement,
    metrics(make) {
      const { integrations: integration } = make;
      const placements = make.counter('placements_total', 'Placements that entered a state.', {
        integration,
        outcome: PLACEMENT_OUTCOMES,
      });
      const causes = make.counter('placement_causes_total', 'Placements that entered a state, by cause.', {
        outcome: PLACEMENT_OUTCOMES.filter((outcome) => outcome !== 'sent' && outcome !== 'withdrawn'),
        cause: PLACEMENT_CODES,
      });
      const help = 'From the signal to the ticket.';
      const seconds = make.histogram('placement_duration_seconds', help, PLACEMENT, { integration });
      return (observed) => {
        const { outcome } = observed;
        if (observed.entered) {
          placements(observed.integration ?? UNKNOWN, outcome);
          causes(outcome, observed.cause?.code);
        }
        if (outcome === 'sent') seconds(observed.sinceSignalMs / 1_000, observed.integration ?? UNKNOWN);
      };
    },
  },

  cancellation: {
    log(log, { what: _what, ...about }) {
      const { outcome } = about;
      if (outcome === 'by_phone') log.error(about, 'cancel by telephone: an operator must call the restaurant');
      else if (outcome === 'held') log.error(about, 'not cancelled yet: needs an operator');
      else if (outcome === 'in_doubt') log.warn(about, 'in doubt: the POS may have cancelled the order');
      else if (outcome === 'refused') log.warn(about, 'not cancelled: the order continues, or has ended');
      else log.info(about, 'cancellation');
    },
    metrics: (make) =>
      make.countEach('cancellations_total', 'Orders to be cancelled at a POS, by outcome.', {
        integration: make.integrations,
        outcome: CANCELLATION_OUTCOMES,
      }),
  },

  refresh: {
    log(log, { what: _what, ...about }, limited) {
      const { outcome } = about;
      if (outcome === 'cancelled') log.info(about, 'the platform has cancelled an order');
      else if (outcome === 'changed') log.info(about, 'the platform has changed an order: the new version is placed');
      else if (outcome === 'changed_after_sent') log.warn(about, 'the platform has changed an order that its POS has');
      else if (outcome === 'failing') {
        limited('warn', 'further orders cannot be refreshed, not logged individually', () =>
          log.warn(about, 'a signalled order cannot be refreshed; it is tried again'),
        );
      } else if (outcome === 'given_up') {
        log.error(about, 'a signalled order could not be refreshed: it continues unchanged');
      }
    },
    metrics: (make) =>
      make.countEach('refreshes_total', 'Known orders that were signalled and fetched again, by outcome.', {
        outcome: REFRESH_OUTCOMES,
      }),
  },

  poll: {
    log(log, observed, limited) {
      const { serviceOrderId, locationId, integration, outcome, error: err } = observed;
      const about = { serviceOrderId, locationId, integration, milliseconds: rounded(observed) };
      if (outcome === 'failed') {
        limited('warn', 'further polls failed, not logged individually', () =>
          log.warn({ ...about, err }, 'the POS could not be polled; it is polled again later'),
        );
      } else if (outcome === 'said_more') {
        log.warn(about, 'the POS reported more than its webhooks when polled: a webhook is missing');
      }
    },
    metrics: (make) =>
      make.countEach('polls_total', 'Polls of a POS about an order without expected reports, by outcome.', {
        integration: make.integrations,
        outcome: POLL_OUTCOMES,
      }),
    spans(observed) {
      const { serviceOrderId, outcome, request, milliseconds } = observed;
      const failed = outcome === 'failed';
      const attributes = {
        ...asking(request),
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(failed && { 'error.type': errorType(observed.error) }),
      };
      return [[serviceOrderId, { name: 'readStatus', kind: 'CLIENT', milliseconds, attributes, failed }]];
    },
  },
} satisfies Partial<EventReadings>;

function logSignal(log: Log, observed: SignalObserved): void {
  const { requestId, trace, outcome, serviceOrderId, messageId, tokenId, detail } = observed;
  const about = { reqId: requestId, trace, outcome, milliseconds: rounded(observed), tokenId };
  const what = observed.from === 'push' ? 'push' : 'signal by HTTP';
  if (outcome === 'poison') {
    log.warn(
      { ...about, messageId, detail },
      what === 'push' ? 'poison signal acknowledged' : `${what} without an order`,
    );
  } else if (outcome === 'unauthorized') log.warn({ ...about, detail }, `${what} refused`);
  else if (outcome === 'not_recorded') {
    log.error({ ...about, serviceOrderId, err: observed.error }, `${what} not recorded`);
  } else log.info({ ...about, serviceOrderId, messageId }, 'signal');
}

function logPlacement(log: Log, observed: PlacementObserved): void {
  const { outcome, serviceOrderId, locationId, integration, milliseconds, problem, cause } = observed;
  const about = {
    serviceOrderId,
    locationId,
    integration,
    outcome,
    milliseconds: milliseconds === undefined ? undefined : Math.round(milliseconds),
    sinceSignalMs: Math.round(observed.sinceSignalMs),
    problem,
    cause,
  };
  if (outcome === 'sent') log.info(about, 'order sent');
  else if (cause?.code === 'order_skipped') log.info(about, 'order skipped: the mapper says that it is not for us');
  else if (outcome === 'withdrawn') log.info(about, 'order withdrawn: it was cancelled before it was sent');
  else if (outcome === 'waiting') log.info(about, 'order not placed yet; it will be retried');
  else if (outcome === 'failed') log.warn(about, 'order failed');
  else if (cause?.code === 'location_paused_by_pos') log.info(about, 'order waits: its POS has paused the location');
  else if (outcome === 'held') log.error(about, 'order held: needs an operator');
  else if (!observed.forOperator) log.warn(about, 'in doubt: the POS may have the order');
  else log.error(about, 'in doubt: an operator must say whether the POS has the order');
}
