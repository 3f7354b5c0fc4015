import type { Log } from '../core/domain/log.ts';
import { WEBHOOK_OUTCOMES } from '../core/domain/webhook.ts';
import { DROP_CODES } from '../core/domain/webhook-cause.ts';
import { WEBHOOK_PATH, webhookPath } from '../core/domain/paths.ts';
import type { WebhookObserved } from '../core/domain/observed.ts';
import { QUICK, atLocation, rounded, type Count, type EventReadings, type MakeMetrics, type SpanOf } from './event.ts';

const WEBHOOK_ROUTE = `${WEBHOOK_PATH}/:integration/:locationId`;
const BATCH = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

const webhooksTotal = (make: MakeMetrics): Count =>
  make.counter('webhooks_total', 'Webhooks by outcome.', {
    integration: make.integrations,
    outcome: [...WEBHOOK_OUTCOMES, 'unauthorized', 'not_committed'],
  });
const droppedTotal = (make: MakeMetrics): Count =>
  make.counter('webhooks_dropped_total', 'Dropped webhooks by cause. Those with old_token were refused with 401.', {
    integration: make.integrations,
    cause: DROP_CODES,
  });
const notStoredTotal = (make: MakeMetrics): Count =>
  make.counter('webhooks_not_stored_total', 'Dropped webhooks that were counted but not stored.', {
    integration: make.integrations,
  });
/** Undefined if there is no spill: then the metrics of the spill do not exist. */
const drainedTotal = (make: MakeMetrics): Count | undefined =>
  make.hasSpill
    ? make.counter('spill_drained_total', 'Messages of the spill by outcome.', {
        outcome: [...WEBHOOK_OUTCOMES, 'known', 'put_back', 'not_decrypted'],
      })
    : undefined;

export const webhookEvents = {
  webhook: {
    log(log, observed, limited) {
      if (observed.webhookId !== null) logWebhook(log, observed);
      else limited('warn', 'further webhooks not stored, not logged individually', () => logWebhook(log, observed));
    },
    metrics(make) {
      const [webhooks, dropped, notStored] = [webhooksTotal(make), droppedTotal(make), notStoredTotal(make)];
      const drained = drainedTotal(make);
      const labels = { integration: make.integrations };
      const seconds = make.histogram('webhook_duration_seconds', 'From the request head to the commit.', QUICK, labels);
      return (observed) => {
        const { integration, outcome } = observed;
        webhooks(integration, outcome);
        if (observed.dropped !== undefined) dropped(integration, observed.dropped.cause.code);
        if (observed.webhookId === null) notStored(integration);
        if (observed.fromSpill === true) drained?.(outcome);
        else seconds(observed.milliseconds / 1_000, integration);
      };
    },
    spans(observed, { places }) {
      const { outcome, milliseconds, serviceOrderIds, webhookId } = observed;
      const attributes = {
        ...places.endpoint,
        'http.route': WEBHOOK_ROUTE,
        // The query is left out, because it contains the token.
        'url.path': webhookPath(observed),
        'http.response.status_code': 200,
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(webhookId !== null && { 'expediter.webhook_id': webhookId }),
        'expediter.request_id': observed.requestId,
      };
      const span = { name: `POST ${WEBHOOK_ROUTE}`, kind: 'SERVER' as const, milliseconds, attributes };
      return serviceOrderIds.map((id) => [id, span]);
    },
  },

  'webhook refused': {
    log(log, observed, limited) {
      const { requestId: reqId, trace, outcome, locationId, error: err } = observed;
      // The URL may contain anything, so it is not logged.
      const about = { reqId, trace, outcome, milliseconds: rounded(observed) };
      if (outcome === 'unauthorized') {
        limited('info', 'further webhooks refused, not logged individually', () => log.info(about, 'webhook refused'));
      } else if (err !== undefined) {
        limited('error', 'further webhooks not committed, not logged individually', () =>
          log.error({ ...about, locationId, err }, 'webhook not committed'),
        );
      }
    },
    metrics(make) {
      const webhooks = webhooksTotal(make);
      return ({ integration, outcome }) => webhooks(integration, outcome);
    },
  },

  'old token': {
    log: (log, observed, limited) =>
      limited('warn', 'further webhooks with an old token, not logged individually', () => {
        const { requestId, what: _what, error, ...rest } = observed;
        const about = { reqId: requestId, ...rest, milliseconds: rounded(observed), err: error };
        log.warn(about, rest.webhookId === null ? 'old token, webhook not stored' : 'old token, webhook stored');
      }),
    metrics(make) {
      const [dropped, notStored] = [droppedTotal(make), notStoredTotal(make)];
      return ({ integration, webhookId }) => {
        dropped(integration, 'old_token');
        if (webhookId === null) notStored(integration);
      };
    },
  },

  spill: {
    log(log, observed, limited) {
      // A webhook that the spill refused is logged as `webhook not committed`.
      if (observed.outcome !== 'spilled') return;
      limited('warn', 'further webhooks spilled, not logged individually', () => {
        const { requestId: reqId, trace, locationId, integration, webhookId, error: err } = observed;
        const about = { reqId, trace, locationId, integration, webhookId, milliseconds: rounded(observed), err };
        log.warn(about, 'webhook spilled');
      });
    },
    metrics(make) {
      if (!make.hasSpill) return () => {};
      const help = 'Webhooks that Postgres did not commit in time: spilled to Pub/Sub, or refused.';
      return make.countEach('spill_webhooks_total', help, { outcome: ['spilled', 'refused'] });
    },
  },

  drain: {
    log(log, observed, limited) {
      if (observed.outcome === 'known') return;
      const { outcome, error: err } = observed;
      limited('error', 'further messages not drained, not logged individually', () => {
        if (outcome === 'put_back')
          log.warn({ err }, 'a spilled webhook could not be committed; Pub/Sub delivers it again');
        else log.error({ err }, 'a spilled webhook cannot be decrypted; later it goes to the dead-letter topic');
      });
    },
    metrics(make) {
      const drained = drainedTotal(make);
      return ({ outcome }) => drained?.(outcome);
    },
  },

  flush: {
    metrics(make) {
      const size = make.histogram('flush_batch_size', 'Webhooks in one commit.', BATCH, {});
      const seconds = make.histogram('flush_duration_seconds', 'One commit of webhooks.', QUICK, {});
      return ({ webhooks, milliseconds }) => {
        size(webhooks);
        seconds(milliseconds / 1_000);
      };
    },
    spans: (observed) => applied(observed, { 'expediter.webhooks': observed.webhooks }),
  },

  redrive: { spans: (observed) => applied(observed, { 'expediter.parked': true }) },

  conflict: {
    log: (log, { what: _what, ...about }) => log.error(about, 'conflict: a person should check the order'),
    metrics: (make) =>
      make.countEach('conflicts_total', 'Reports of a POS that contradict the stored order.', {
        integration: make.integrations,
      }),
  },
} satisfies Partial<EventReadings>;

function logWebhook(log: Log, observed: WebhookObserved): void {
  const { requestId, trace, locationId, integration, webhookId, outcome, serviceOrderIds: ids, dropped } = observed;
  const about = {
    reqId: requestId,
    trace,
    locationId,
    integration,
    webhookId,
    outcome,
    milliseconds: rounded(observed),
    // People search the log for `serviceOrderId`, so the id has this name if there is only one.
    serviceOrderId: ids.length > 1 ? undefined : ids[0],
    serviceOrderIds: ids.length > 1 ? ids : undefined,
    reason: dropped?.reason,
    cause: dropped?.cause,
  };
  if (outcome !== 'dropped') log.info(about, 'webhook');
  else log.warn(about, webhookId === null ? 'webhook dropped, and not stored' : 'webhook dropped');
}

function applied(
  { serviceOrderIds, milliseconds }: { serviceOrderIds: readonly (string | undefined)[]; milliseconds: number },
  attributes: Record<string, number | boolean>,
): SpanOf[] {
  const ids = new Set(serviceOrderIds.filter((id) => id !== undefined));
  return [...ids].map((id) => [id, { name: 'apply', kind: 'INTERNAL', milliseconds, attributes }]);
}
