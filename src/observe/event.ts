import type { Attributes, SpanKind } from '@opentelemetry/api';
import type { Log } from '../core/domain/log.ts';
import type { Observed, RequestMade } from '../core/domain/observed.ts';
import type { Now } from '../core/postgres/database-clock.ts';

/**
 * Turns a kind of event into a log line, metrics and spans. The libraries for metrics and traces are loaded only if
 * they are configured, so a reading must not import them.
 */
export type EventReading<What extends Observed['what'] = Observed['what']> = {
  /** Writes at most one line, with ids and times but no payload. */
  log?: (log: Log, observed: Extract<Observed, { what: What }>, limited: Limited) => void;
  /** Registers the metrics that the event changes. Two kinds of events may share a metric. */
  metrics?: (make: MakeMetrics) => (observed: Extract<Observed, { what: What }>) => void;
  spans?: (observed: Extract<Observed, { what: What }>, about: { now: Now; places: Places }) => SpanOf[];
};

/**
 * Limits a kind of log line that anonymous senders or an outage can cause in masses. It writes only the first lines of
 * each second. A second later it writes one line, the message `more`, with the number of lines that were left out.
 */
export type Limited = (level: 'info' | 'warn' | 'error', more: string, write: () => void) => void;

export type EventReadings<What extends Observed['what'] = Observed['what']> = { [Each in What]: EventReading<Each> };

/** This label value replaces every unknown value, so that a label has few values. */
export const UNKNOWN = 'unknown';

/** The possible values of each label, at most three labels. `Count` and `Measure` take the values in this order. */
export type Labels = Record<string, readonly string[]>;

export type Count = (first?: string, second?: string, third?: string) => void;
export type Measure = (value: number, first?: string, second?: string) => void;
/** Makes a gauge that `show` sets at every scrape. Series that `show` does not set do not exist. */
export type GaugeBy = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  show: (set: (value: number, labels?: Record<Label, string>) => void) => void,
) => void;

/** Makes metrics. A counter's or histogram's name gets the prefix `expediter_`. Counters with the same name are one. */
export type MakeMetrics = {
  counter(name: string, help: string, labels: Labels): Count;
  /** Makes a counter whose labels are the event's fields with the same names. Null counts as `unknown`. */
  countEach<Label extends string>(
    name: string,
    help: string,
    labels: Record<Label, readonly string[]>,
  ): (observed: Record<Label, string | null>) => void;
  histogram(name: string, help: string, buckets: number[], labels: Labels): Measure;
  gauge: GaugeBy;
  integrations: readonly string[];
  hasSpill: boolean;
  now: Now;
};

export type SpanOf = [serviceOrderId: string, Span];
export type Span = {
  name: string;
  kind: keyof typeof SpanKind;
  /** The duration of the span, which ends at the time when it is made. */
  milliseconds: number;
  attributes: Attributes;
  failed?: boolean;
  /** The span's id, if other systems have it already. By default a new id is made. */
  id?: string;
  /** True for the span that is the parent of all other spans of the trace. */
  isRoot?: boolean;
};

/** Attributes that the spans of a process share. */
export type Places = {
  topic: string;
  broker: Attributes;
  platform: Attributes;
  /** For a request to this service. */
  endpoint: Attributes;
};

export function rounded({ milliseconds }: { milliseconds: number }): number {
  return Math.round(milliseconds);
}

export function atLocation({ locationId, integration }: { locationId: string; integration: string }): Attributes {
  return { 'expediter.location_id': locationId, 'expediter.integration': integration };
}

/** Makes the span attributes of a request to another system. */
export function asking(request: RequestMade | undefined): Attributes {
  if (request === undefined) return {};
  const { method, origin, status } = request;
  return {
    'http.request.method': method,
    ...serverOf(origin),
    ...(status !== undefined && { 'http.response.status_code': status }),
  };
}

/** Makes the span attributes of a URL's server. They omit the path and the query, which may contain a key. */
export function serverOf(url: string | undefined): Attributes {
  const { protocol, hostname, port } = URL.parse(url ?? '') ?? {};
  if (protocol === undefined) return {};
  return {
    'url.scheme': protocol.slice(0, -1),
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  };
}

/** Returns the gRPC status with which a Pub/Sub error's message begins, or else the error's name. */
export function errorType(error: unknown): string {
  const { name, message } = error instanceof Error ? error : { name: '_OTHER', message: '' };
  return /^\d+ ([A-Z_]+):/.exec(message)?.[1] ?? name;
}

/** Upper bounds of histogram buckets for work that takes milliseconds. In seconds. */
export const QUICK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5];
