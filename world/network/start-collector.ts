import type { IncomingHttpHeaders } from 'node:http';
import { fileURLToPath } from 'node:url';
import { loadSync } from '@grpc/proto-loader';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { readBody, serveHttp } from './serve-http.ts';

const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const;
type Kind = (typeof KINDS)[number];

export type CollectedSpan = {
  traceId: string;
  spanId: string;
  /** Empty if it has none. */
  parentSpanId: string;
  name: string;
  kind: Kind;
  /** Milliseconds since the epoch. */
  start: number;
  end: number;
  attributes: Record<string, string>;
  failed: boolean;
  /** Attributes of the process that sent it. */
  resource: Record<string, string>;
};

export type Collector = {
  /** The value of OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string;
  spans: readonly CollectedSpan[];
  /** All received bytes as text, to search for what must not be in it. */
  bytes: () => string;
  requests: number;
  /** Headers of the last request. */
  headers: IncomingHttpHeaders;
  /** `hang`: takes the request and never answers. A number: answers that status. */
  behave: 'hang' | number | undefined;
  stop(): Promise<void>;
};

type KeyValue = { key: string; value: Record<string, unknown> };
type Request = {
  resource_spans: { resource: { attributes: KeyValue[] }; scope_spans: { spans: Record<string, unknown>[] }[] }[];
};

/** An OpenTelemetry collector that receives spans by OTLP over HTTP in protobuf, and stores them. */
export async function startCollector(): Promise<Collector> {
  const definition = loadSync(fileURLToPath(new URL('./otlp.proto', import.meta.url)), {
    keepCase: true,
    longs: String,
  });
  const service = definition['otlp.TraceService'] as ServiceDefinition;
  const spans: CollectedSpan[] = [];
  const bodies: Buffer[] = [];
  const collector: Collector = {
    url: '',
    spans,
    bytes: () => Buffer.concat(bodies).toString('latin1'),
    requests: 0,
    headers: {},
    behave: undefined,
    stop: () => server.stop(),
  };
  const server = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    collector.requests += 1;
    collector.headers = request.headers;
    if (collector.behave === 'hang') return;
    if (collector.behave !== undefined) {
      response.writeHead(collector.behave).end();
      return;
    }
    if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/x-protobuf') {
      response.writeHead(404).end();
      return;
    }
    bodies.push(body);
    const read = service['Export']?.requestDeserialize(body) as Request;
    for (const { resource, scope_spans: scopes } of read.resource_spans) {
      const from = toRecord(resource.attributes);
      for (const scope of scopes) for (const span of scope.spans) spans.push(toSpan(span, from));
    }
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  collector.url = server.url;
  return collector;
}

function toSpan(span: Record<string, unknown>, resource: Record<string, string>): CollectedSpan {
  const hex = (name: string): string => Buffer.from((span[name] ?? '') as Buffer).toString('hex');
  const milliseconds = (name: string): number => Number(BigInt(String(span[name])) / 1_000n) / 1_000;
  return {
    traceId: hex('trace_id'),
    spanId: hex('span_id'),
    parentSpanId: hex('parent_span_id'),
    name: String(span['name']),
    kind: KINDS[Number(span['kind'])] ?? 'UNSPECIFIED',
    start: milliseconds('start_time_unix_nano'),
    end: milliseconds('end_time_unix_nano'),
    attributes: toRecord((span['attributes'] ?? []) as KeyValue[]),
    failed: (span['status'] as { code?: number } | null)?.code === 2,
    resource,
  };
}

function toRecord(attributes: readonly KeyValue[]): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, String(Object.values(value)[0])]));
}
