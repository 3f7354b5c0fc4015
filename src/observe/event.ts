import type { Attributes, SpanKind } from '@opentelemetry/api';
import type { Log } from '../core/domain/log.ts';
import type { Observed, RequestMade } from '../core/domain/observed.ts';
import type { Now } from '../core/postgres/database-clock.ts';

/**
 * How a kind of event is read, at most in three ways. Libraries for metrics and traces are loaded only where they are
 * configured, so a definition imports none of them.
 */
export type EventReading<What extends Observed['what'] = Observed['what']> = {
  /** Writes at most one line: ids and times, nothing of its payload. */
  log?: (log: Log, observed: Extract<Observed, { what: What }>, limited: Limited) => void;
  /** Registers the metrics that it changes. Two kinds of events may name the same one. */
  metrics?: (make: MakeMetrics) => (observed: Extract<Observed, { what: What }>) => void;
  /** Makes the spans of one event. */
  spans?: (observed: Extract<Observed, { what: What }>, about: { now: Now; places: Places }) => SpanOf[];
};

/**
 * Writes a line of a kind that strangers can cause, or an outage: the first twenty in a second, and a second later how
 * many came beyond, in one line that says `more`.
 */
export type Limited = (level: 'info' | 'warn' | 'error', more: string, write: () => void) => void;

/** The readings of some kinds of events. */
export type EventReadings<What extends Observed['what']> = { [Each in What]: EventReading<Each> };

/** The label value that stands for any unknown one, so that a label has few values. */
export const UNKNOWN = 'unknown';

/** The possible values of each label, in the order of the arguments. At most three labels. */
export type Labels = Record<string, readonly string[]>;

/** Adds one to the series of these label values. */
export type Count = (first?: string, second?: string, third?: string) => void;
/** Adds one value to the series of these label values. */
export type Measure = (value: number, first?: string, second?: string) => void;
/** A gauge that is read at a scrape. Series that `show` does not set do not exist. */
export type GaugeBy = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  show: (set: (value: number, labels?: Record<Label, string>) => void) => void,
) => void;

/** Makes metrics, whose names begin with `expediter_`. A name that is there already gives the same metric. */
export type MakeMetrics = {
  counter(name: string, help: string, labels: Labels): Count;
  /** Makes a counter of events by those of their fields that are the labels. Null is `unknown`. */
  countEach<Label extends string>(
    name: string,
    help: string,
    labels: Record<Label, readonly string[]>,
  ): (observed: Record<Label, string | null>) => void;
  histogram(name: string, help: string, buckets: number[], labels: Labels): Measure;
  gauge: GaugeBy;
  /** The values of the label `integration`. */
  integrations: readonly string[];
  hasSpill: boolean;
  now: Now;
};

/** A span, with its order. */
export type SpanOf = [serviceOrderId: string, Span];
export type Span = {
  name: string;
  kind: keyof typeof SpanKind;
  /** The duration. The span ends now. */
  milliseconds: number;
  attributes: Attributes;
  failed?: boolean;
  /** Where others know it already. */
  id?: string;
  /** True for the parent of the trace's other spans. */
  isRoot?: boolean;
};

/** The attributes that all spans of a process have in common, each where it is apt. */
export type Places = {
  topic: string;
  broker: Attributes;
  platform: Attributes;
  /** Of a request to us. */
  endpoint: Attributes;
};

export function rounded({ milliseconds }: { milliseconds: number }): number {
  return Math.round(milliseconds);
}

export function atLocation({ locationId, integration }: { locationId: string; integration: string }): Attributes {
  return { 'expediter.location_id': locationId, 'expediter.integration': integration };
}

/** Makes the attributes of a request to others. */
export function asking(request: RequestMade | undefined): Attributes {
  if (request === undefined) return {};
  const { method, origin, status } = request;
  return {
    'http.request.method': method,
    ...serverOf(origin),
    ...(status !== undefined && { 'http.response.status_code': status }),
  };
}

/** Makes the attributes of a URL's server, which hold no key. */
export function serverOf(url: string | undefined): Attributes {
  const { protocol, hostname, port } = URL.parse(url ?? '') ?? {};
  if (protocol === undefined) return {};
  return {
    'url.scheme': protocol.slice(0, -1),
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  };
}

/** The name of a gRPC status, which the library's error begins with, or the error's own. */
export function errorType(error: unknown): string {
  const { name, message } = error instanceof Error ? error : { name: '_OTHER', message: '' };
  return /^\d+ ([A-Z_]+):/.exec(message)?.[1] ?? name;
}

/** Upper bounds of the buckets for work of milliseconds, in seconds. */
export const QUICK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5];
