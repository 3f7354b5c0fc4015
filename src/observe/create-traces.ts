import { randomUUID } from 'node:crypto';
import { SpanKind, SpanStatusCode, TraceFlags, type HrTime } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace';
import type { Log } from '../core/domain/log.ts';
import type { Observe } from '../core/domain/observed.ts';
import { isTraced, newSpanId, rootSpanId, traceId } from '../core/domain/trace-id.ts';
import { withTimeout } from '../core/domain/timing.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import { asking, serverOf, type Places, type Span } from './event.ts';
import { readerOf } from './events.ts';

/** The addresses of the service and of the systems that it calls. */
export type TracedConfig = {
  STATUS_TOPIC: string;
  ORDER_API_URL: string;
  PUBSUB_EMULATOR_HOST?: string | undefined;
  PUBLIC_URL?: string | undefined;
};

export type Traces = {
  observe: Observe;
  /** Sends the remaining spans, within a second. */
  close(): Promise<void>;
};

/** The version of OpenTelemetry's conventions that the attributes follow. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.44.0';

/** With these limits, an unavailable collector costs little. `QUEUE`: spans that wait. `BATCH`: spans of one call. */
const QUEUE = 4_096;
const BATCH = 512;
const EVERY_MS = 1_000;
const EXPORT_MS = 3_000;
const UNDER_WAY = 2;
const CLOSE_MS = 1_000;

/**
 * Writes one trace per order. The trace id is derived from the order's id, so spans of all processes, even hours apart,
 * belong to one trace, and no id has to be passed on or stored. A span is made after its event, so an untraced order
 * costs nothing. Names, kinds and attributes follow OpenTelemetry's conventions for messaging and HTTP where they exist
 * (https://opentelemetry.io/docs/specs/semconv/messaging/gcp-pubsub/,
 * https://opentelemetry.io/docs/specs/semconv/http/http-spans/). The others are our own.
 * @param about.endpoint the collector's base URL, without `/v1/traces`
 * @param about.ratio the share of traced orders; every process chooses the same orders
 */
export function createTraces(about: {
  endpoint: string;
  ratio: number;
  config: TracedConfig;
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
  const instrumentationScope = { name: 'expediter', version: about.version, schemaUrl: SCHEMA_URL };
  const context = { now: about.now, places: placesOf(about.config) };

  const add = (serviceOrderId: string, span: Span): void => {
    const trace = traceId(serviceOrderId);
    if (!isTraced(trace, about.ratio)) return;
    const sampled = { traceId: trace, traceFlags: TraceFlags.SAMPLED };
    const root = { ...sampled, spanId: rootSpanId(serviceOrderId) };
    const own = span.isRoot === true ? root : { ...sampled, spanId: span.id ?? newSpanId() };
    const end = about.now().getTime();
    const readable: ReadableSpan = {
      name: span.name,
      kind: SpanKind[span.kind],
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
    observe: readerOf(({ spans }) => {
      if (spans === undefined) return undefined;
      return (observed) => {
        for (const [serviceOrderId, span] of spans(observed, context)) add(serviceOrderId, span);
      };
    }),
    async close() {
      const late = (): Error => new Error(`not closed in ${CLOSE_MS} ms`);
      // Spans that the exporter could not send have been reported already.
      await withTimeout(CLOSE_MS, () => processor.shutdown(), late).catch(() => {});
    },
  };
}

function placesOf(config: TracedConfig): Places {
  const { 'url.scheme': _, ...broker } = serverOf(`https://${config.PUBSUB_EMULATOR_HOST ?? 'pubsub.googleapis.com'}`);
  return {
    topic: config.STATUS_TOPIC,
    broker,
    platform: asking({ method: 'POST', origin: config.ORDER_API_URL }),
    // The scheme of PUBLIC_URL replaces `http`, because a proxy in front of the service may terminate HTTPS.
    endpoint: { 'http.request.method': 'POST', 'url.scheme': 'http', ...serverOf(config.PUBLIC_URL) },
  };
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
