import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { runMain } from '../../world/processes/run-main.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { OPERATOR_TOKEN } from '../observe/scrape.ts';
import { loadsIn, watchLoads } from './watch-loads.ts';

let system: System;
beforeAll(async () => {
  system = await startSystem({ processes: 0 });
});
afterAll(() => system?.stop());

async function loads(env: Record<string, string>): Promise<string[]> {
  const main = await runMain({ ...system.env, ...env, NODE_OPTIONS: watchLoads });
  main.child.kill('SIGTERM');
  await main.exited;
  // The Pub/Sub client brings an OpenTelemetry API of its own.
  const wanted =
    /prom-client|create-metrics|create-traces|opentelemetry\/(?:sdk-trace|exporter)|http\/operator|type-provider|swagger|openid-client|oauth4webapi/;
  return loadsIn(main.output()).filter((url) => wanted.test(url));
}

it('a process without metrics and traces loads no packages for them', async () => {
  expect(await loads({})).toEqual([]);
});

it('a process loads the packages for metrics and for sign-in only if they are configured', async () => {
  const metrics = (await loads({ OPERATOR_TOKEN })).join('\n');
  expect(metrics).toContain('prom-client');
  expect(metrics).toContain('http/operator');
  expect(metrics).not.toMatch(/create-traces|swagger|openid-client/);
  const signIn = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_CLIENT_ID: 'console', CONSOLE_URL: 'http://127.0.0.1:9' };
  const people = (await loads({ ...signIn, OIDC_ALLOWED_DOMAINS: 'example.com' })).join('\n');
  expect(people).toContain('http/operator');
  // Only the first who signs in waits for it.
  expect(people).not.toMatch(/openid-client|oauth4webapi/);
  const traces = (await loads({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })).join('\n');
  expect(traces).toContain('create-traces');
  expect(traces).not.toContain('prom-client');
});

it('a process without Pub/Sub loads no library of Google, also for its first order', async () => {
  const plain = await startSystem({ processes: 0, doors: 'http' });
  onTestFinished(() => plain.stop());
  const main = await runMain({ ...plain.env, OPERATOR_TOKEN, NODE_OPTIONS: watchLoads });
  // It is the last library that is loaded in advance.
  await until(async () => main.output().includes('node_modules/undici/'));
  main.child.kill('SIGTERM');
  await main.exited;
  expect(loadsIn(main.output()).filter((url) => /google|grpc|protobuf/.test(url))).toEqual([]);
});
