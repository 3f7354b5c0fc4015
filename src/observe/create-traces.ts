import { withTimeout } from '../core/domain/with-timeout.ts';
import { randomBytes, randomUUID } from 'node:crypto';
import { SpanKind, SpanStatusCode, TraceFlags, type Attributes, type HrTime } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace';
import type { Now } from '../core/postgres/database-clock.ts';
import type { Log } from '../core/domain/log.ts';
import type { Observe, Observed } from '../core/domain/observed.ts';
import { rootSpanId, traceId } from '../core/domain/trace-id.ts';

export type Traces = {
  observe: Observe;
  /** Sends the remaining spans, within a second. */
  close(): Promise<void>;
};

/** Limits for a collector that is away: so many spans wait, and a call takes no longer. */
const QUEUE = 4_096;
const BATCH = 512;
const EVERY_MS = 1_000;
const EXPORT_MS = 3_000;
const UNDER_WAY = 2;
const CLOSE_MS = 1_000;

/**
 * Writes one trace per order. The trace id is derived from the order's id, so that spans of all processes, hours apart,
 * join one trace, and nothing has to be passed along or stored. Spans are made after the event: what is not traced
 * costs nothing.
 * @param about.endpoint the collector's base URL, to which `/v1/traces` is added
 * @param about.ratio the share of orders that are traced; every process chooses the same ones
 */
export function createTraces(about: {
  endpoint: string;
  ratio: number;
  version: string;
  now: Now;
  log: Pick<Log, 'info' | 'warn'>;
}): Traces {
  const exporter = new OTLPTraceExporter({
    url: `${about.endpoint.replace(/\/$/, '')}/v1/traces`,
    timeoutMillis: EXPORT_MS,
    concurrencyLimit: UNDER_WAY,
  });
  const processor = new BatchSpanProcessor({
    exporter: reportingLoss(exporter, about.log),
    maxQueueSize: QUEUE,
    maxExportBatchSize: BATCH,
    scheduledDelayMillis: EVERY_MS,
    exportTimeoutMillis: EXPORT_MS,
  });
  const resource = resourceFromAttributes({
    'service.name': 'expediter',
    'service.version': about.version,
    'service.instance.id': randomUUID(),
  });
  const instrumentationScope = { name: 'expediter', version: about.version };

  const add = (serviceOrderId: string, span: Span): void => {
    const trace = traceId(serviceOrderId);
    if (!isChosen(trace, about.ratio)) return;
    const context = { traceId: trace, traceFlags: TraceFlags.SAMPLED };
    const root = { ...context, spanId: rootSpanId(serviceOrderId) };
    const own = span.isRoot === true ? root : { ...context, spanId: randomBytes(8).toString('hex') };
    const end = about.now().getTime();
    const readable: ReadableSpan = {
      name: span.name,
      kind: span.kind,
      spanContext: () => own,
      ...(span.isRoot !== true && { parentSpanContext: root }),
      startTime: toHrTime(end - span.milliseconds),
      endTime: toHrTime(end),
      duration: toHrTime(span.milliseconds),
      status: { code: span.failed === true ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
      attributes: { 'expediter.order_id': serviceOrderId, ...span.attributes },
      links: [],
      events: [],
      ended: true,
      resource,
      instrumentationScope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
    processor.onEnd(readable);
  };

  return {
    observe(observed) {
      for (const [serviceOrderId, span] of spansOf(observed, about.now)) add(serviceOrderId, span);
    },
    async close() {
      const late = (): Error => new Error(`not closed in ${CLOSE_MS} ms`);
      // Spans that the exporter could not send have been reported already.
      await withTimeout(CLOSE_MS, () => processor.shutdown(), late).catch(() => {});
    },
  };
}

type Span = {
  name: string;
  kind: SpanKind;
  /** The duration. The span ends now. */
  milliseconds: number;
  attributes: Attributes;
  failed?: boolean;
  /** True for the parent of the trace's other spans. */
  isRoot?: boolean;
};

/** Makes the spans of an event, each with its order. */
function spansOf(observed: Observed, now: Now): [serviceOrderId: string, Span][] {
  switch (observed.what) {
    case 'signal': {
      const { serviceOrderId, outcome, milliseconds } = observed;
      if (serviceOrderId === undefined) return [];
      const attributes = { 'expediter.outcome': outcome, 'expediter.request_id': observed.requestId };
      const isRoot = outcome === 'recorded';
      return [[serviceOrderId, { name: 'push', kind: SpanKind.SERVER, milliseconds, attributes, isRoot }]];
    }
    case 'claim': {
      const milliseconds = Math.max(0, now().getTime() - Date.parse(observed.dueAt));
      return [[observed.serviceOrderId, { name: 'queue', kind: SpanKind.INTERNAL, milliseconds, attributes: {} }]];
    }
    case 'refetch': {
      const { serviceOrderId, outcome, milliseconds } = observed;
      const failed = outcome !== 'fetched' && outcome !== 'missing';
      const attributes = { 'expediter.outcome': outcome };
      return [[serviceOrderId, { name: 'refetch', kind: SpanKind.CLIENT, milliseconds, attributes, failed }]];
    }
    case 'attempt': {
      const { serviceOrderId, call, outcome, httpStatus, milliseconds } = observed;
      const failed = outcome !== 'placed' && outcome !== 'absent';
      const attributes = {
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(httpStatus !== undefined && { 'http.response.status_code': httpStatus }),
      };
      return [[serviceOrderId, { name: call, kind: SpanKind.CLIENT, milliseconds, attributes, failed }]];
    }
    case 'ask': {
      const { serviceOrderId, outcome, milliseconds } = observed;
      const attributes = { ...atLocation(observed), 'expediter.outcome': outcome };
      const failed = outcome === 'failed';
      return [[serviceOrderId, { name: 'readStatus', kind: SpanKind.CLIENT, milliseconds, attributes, failed }]];
    }
    case 'webhook': {
      const { outcome, milliseconds, serviceOrderIds, webhookId } = observed;
      const attributes = {
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(webhookId !== null && { 'expediter.webhook_id': webhookId }),
        'expediter.request_id': observed.requestId,
      };
      return serviceOrderIds.map((id) => [id, { name: 'webhook', kind: SpanKind.SERVER, milliseconds, attributes }]);
    }
    case 'flush':
      return applied(observed.serviceOrderIds, observed.milliseconds, { 'expediter.webhooks': observed.webhooks });
    case 'redrive':
      return applied(observed.serviceOrderIds, observed.milliseconds, { 'expediter.parked': true });
    case 'live message': {
      const { serviceOrderId, sequence, outcome, milliseconds } = observed;
      const attributes = { 'expediter.sequence': sequence, 'expediter.outcome': outcome };
      const failed = outcome === 'failed';
      return [[serviceOrderId, { name: 'publish', kind: SpanKind.PRODUCER, milliseconds, attributes, failed }]];
    }
    case 'webhook refused':
    case 'old token':
    case 'spill':
    case 'drain':
    case 'left out':
    case 'placement':
    case 'conflict':
    case 'POS pause':
    case 'follow':
    case 'background work':
    default:
      return [];
  }
}

function applied(
  serviceOrderIds: readonly (string | undefined)[],
  milliseconds: number,
  attributes: Attributes,
): [string, Span][] {
  const ids = new Set(serviceOrderIds.filter((id) => id !== undefined));
  return [...ids].map((id) => [id, { name: 'apply', kind: SpanKind.INTERNAL, milliseconds, attributes }]);
}

function atLocation({ locationId, integration }: { locationId: string; integration: string }): Attributes {
  return { 'expediter.location_id': locationId, 'expediter.integration': integration };
}

/** Chooses by the beginning of the id, a hash: as good as random, and the same in every process. */
function isChosen(trace: string, ratio: number): boolean {
  return Number.parseInt(trace.slice(0, 8), 16) < ratio * 2 ** 32;
}

function toHrTime(milliseconds: number): HrTime {
  const seconds = Math.floor(milliseconds / 1_000);
  return [seconds, Math.floor((milliseconds - seconds * 1_000) * 1e6)];
}

/** Logs once when traces are lost, and once when they are sent again. */
function reportingLoss(exporter: SpanExporter, log: Pick<Log, 'info' | 'warn'>): SpanExporter {
  let lost = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined;
        if (failed && !lost) log.warn({ err: result.error }, 'traces are lost: the collector does not take them');
        if (!failed && lost) log.info({}, 'the collector takes traces again');
        lost = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
