import { withTimeout } from '../core/domain/with-timeout.ts';
import { randomUUID } from 'node:crypto';
import { SpanKind, SpanStatusCode, TraceFlags, type Attributes, type HrTime } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace';
import type { Config } from '../config.ts';
import type { Log } from '../core/domain/log.ts';
import type { Observe, Observed, RequestMade } from '../core/domain/observed.ts';
import { isTraced, newSpanId, rootSpanId, traceId } from '../core/domain/trace-id.ts';
import { WEBHOOK_PATH, webhookPath } from '../core/domain/webhook-path.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import { PUSH_PATH } from '../http/pubsub-push.ts';

/** Where the service is, and whom it asks. */
type TracedConfig = Pick<Config, 'STATUS_TOPIC' | 'PUBSUB_EMULATOR_HOST' | 'PUBLIC_URL' | 'ORDER_API_URL'>;

export type Traces = {
  observe: Observe;
  /** Sends the remaining spans, within a second. */
  close(): Promise<void>;
};

/** The conventions that the attributes are of. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.44.0';
const WEBHOOK_ROUTE = `${WEBHOOK_PATH}/:integration/:locationId`;

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
 * costs nothing. Names, kinds and attributes are those of OpenTelemetry's conventions for messaging and HTTP, where they
 * have one (https://opentelemetry.io/docs/specs/semconv/messaging/gcp-pubsub/,
 * https://opentelemetry.io/docs/specs/semconv/http/http-spans/), and ours elsewhere.
 * @param about.endpoint the collector's base URL, to which `/v1/traces` is added
 * @param about.ratio the share of orders that are traced; every process chooses the same ones
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
  const places = placesOf(about.config);

  const add = (serviceOrderId: string, span: Span): void => {
    const trace = traceId(serviceOrderId);
    if (!isTraced(trace, about.ratio)) return;
    const context = { traceId: trace, traceFlags: TraceFlags.SAMPLED };
    const root = { ...context, spanId: rootSpanId(serviceOrderId) };
    const own = span.isRoot === true ? root : { ...context, spanId: span.id ?? newSpanId() };
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
      for (const [serviceOrderId, span] of spansOf(observed, about.now, places)) add(serviceOrderId, span);
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
  /** Where others know it already. */
  id?: string;
  /** True for the parent of the trace's other spans. */
  isRoot?: boolean;
};

/** What all spans of a process have in common, each where it is apt. */
type Places = ReturnType<typeof placesOf>;

function placesOf(config: TracedConfig) {
  const { 'url.scheme': _, ...broker } = serverOf(`https://${config.PUBSUB_EMULATOR_HOST ?? 'pubsub.googleapis.com'}`);
  return {
    topic: config.STATUS_TOPIC,
    broker,
    platform: asking({ method: 'POST', origin: config.ORDER_API_URL }),
    /** Of a request to us. What stands in front of the service may speak HTTPS for it. */
    door: { 'http.request.method': 'POST', 'url.scheme': 'http', ...serverOf(config.PUBLIC_URL) },
  };
}

/** Makes the spans of an event, each with its order. */
function spansOf(observed: Observed, now: Now, places: Places): [serviceOrderId: string, Span][] {
  switch (observed.what) {
    case 'signal': {
      const { serviceOrderId, outcome, messageId, subscription, milliseconds } = observed;
      if (serviceOrderId === undefined) return [];
      const attributes = {
        ...places.door,
        'http.route': PUSH_PATH,
        'url.path': PUSH_PATH,
        'http.response.status_code': 204,
        'messaging.system': 'gcp_pubsub',
        'messaging.operation.type': 'process',
        'messaging.operation.name': 'process',
        ...(subscription !== undefined && {
          'messaging.destination.name': subscription,
          'messaging.destination.subscription.name': subscription,
        }),
        ...(messageId !== undefined && { 'messaging.message.id': messageId }),
        'expediter.outcome': outcome,
        'expediter.request_id': observed.requestId,
      };
      const isRoot = outcome === 'recorded';
      const name = subscription === undefined ? 'process' : `process ${subscription}`;
      return [[serviceOrderId, { name, kind: SpanKind.CONSUMER, milliseconds, attributes, isRoot }]];
    }
    case 'claim': {
      const milliseconds = Math.max(0, now().getTime() - Date.parse(observed.dueAt));
      return [[observed.serviceOrderId, { name: 'queue', kind: SpanKind.INTERNAL, milliseconds, attributes: {} }]];
    }
    case 'refetch': {
      const { serviceOrderId, outcome, milliseconds } = observed;
      const failed = outcome !== 'fetched' && outcome !== 'missing';
      const attributes = {
        ...places.platform,
        ...(failed && { 'error.type': outcome }),
        'expediter.outcome': outcome,
      };
      return [[serviceOrderId, { name: 'refetch', kind: SpanKind.CLIENT, milliseconds, attributes, failed }]];
    }
    case 'attempt': {
      const { serviceOrderId, call, outcome, httpStatus, failed, request, milliseconds } = observed;
      const attributes = {
        ...asking(request),
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(httpStatus !== undefined && { 'http.response.status_code': httpStatus }),
        ...(failed && { 'error.type': String(httpStatus ?? outcome) }),
      };
      return [[serviceOrderId, { name: call, kind: SpanKind.CLIENT, milliseconds, attributes, failed }]];
    }
    case 'ask': {
      const { serviceOrderId, outcome, request, milliseconds } = observed;
      const failed = outcome === 'failed';
      const attributes = {
        ...asking(request),
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(failed && { 'error.type': errorType(observed.error) }),
      };
      return [[serviceOrderId, { name: 'readStatus', kind: SpanKind.CLIENT, milliseconds, attributes, failed }]];
    }
    case 'webhook': {
      const { outcome, milliseconds, serviceOrderIds, webhookId } = observed;
      const attributes = {
        ...places.door,
        'http.route': WEBHOOK_ROUTE,
        // Without its query, which holds the token.
        'url.path': webhookPath(observed),
        'http.response.status_code': 200,
        ...atLocation(observed),
        'expediter.outcome': outcome,
        ...(webhookId !== null && { 'expediter.webhook_id': webhookId }),
        'expediter.request_id': observed.requestId,
      };
      const span = { name: `POST ${WEBHOOK_ROUTE}`, kind: SpanKind.SERVER, milliseconds, attributes };
      return serviceOrderIds.map((id) => [id, span]);
    }
    case 'flush':
      return applied(observed.serviceOrderIds, observed.milliseconds, { 'expediter.webhooks': observed.webhooks });
    case 'redrive':
      return applied(observed.serviceOrderIds, observed.milliseconds, { 'expediter.parked': true });
    case 'live message': {
      const { serviceOrderId, sequence, outcome, spanId: id, milliseconds } = observed;
      const failed = outcome === 'failed';
      const attributes = {
        ...places.broker,
        'messaging.system': 'gcp_pubsub',
        'messaging.operation.type': 'send',
        'messaging.operation.name': 'send',
        'messaging.destination.name': places.topic,
        'messaging.gcp_pubsub.message.ordering_key': serviceOrderId,
        ...(failed
          ? { 'error.type': errorType(observed.error) }
          : observed.messageId !== undefined && { 'messaging.message.id': observed.messageId }),
        'expediter.sequence': sequence,
        'expediter.outcome': outcome,
      };
      const name = `send ${places.topic}`;
      return [[serviceOrderId, { name, kind: SpanKind.PRODUCER, milliseconds, attributes, failed, id }]];
    }
    case 'webhook refused':
    case 'old token':
    case 'spill':
    case 'drain':
    case 'left out':
    case 'placement':
    case 'cancellation':
    case 'look':
    case 'conflict':
    case 'POS pause':
    case 'follow':
    case 'guess':
    case 'background work':
    default:
      return [];
  }
}

/** The attributes of a request to others. */
function asking(request: RequestMade | undefined): Attributes {
  if (request === undefined) return {};
  const { method, origin, status } = request;
  return {
    'http.request.method': method,
    ...serverOf(origin),
    ...(status !== undefined && { 'http.response.status_code': status }),
  };
}

/** Of a URL, what holds no key. */
function serverOf(url: string | undefined): Attributes {
  const { protocol, hostname, port } = URL.parse(url ?? '') ?? {};
  if (protocol === undefined) return {};
  return {
    'url.scheme': protocol.slice(0, -1),
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  };
}

/** The name of a gRPC status, which the library's error begins with, or the error's own. */
function errorType(error: unknown): string {
  const { name, message } = error instanceof Error ? error : { name: '_OTHER', message: '' };
  return /^\d+ ([A-Z_]+):/.exec(message)?.[1] ?? name;
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
