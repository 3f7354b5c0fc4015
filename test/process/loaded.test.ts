import { afterAll, beforeAll, expect, it } from 'vitest';
import { runMain } from '../../world/processes/run-main.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { OPERATOR_TOKEN } from '../observe/scrape.ts';

let system: System;
beforeAll(async () => {
  system = await startSystem({ processes: 0 });
});
afterAll(() => system?.stop());

/** Says which modules are loaded; the Pub/Sub client brings an OpenTelemetry API of its own. */
const WATCH = `import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) { console.error('loads ' + url); return next(url, context); } });`;

async function loads(env: Record<string, string>): Promise<string[]> {
  const main = await runMain({
    ...system.env,
    ...env,
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(WATCH)}`,
  });
  main.child.kill('SIGTERM');
  await main.exited;
  const wanted =
    /prom-client|create-metrics|create-traces|opentelemetry\/(?:sdk-trace|exporter)|http\/operator|type-provider|swagger|openid-client|oauth4webapi/;
  return main
    .output()
    .split('\n')
    .filter((line) => line.startsWith('loads ') && wanted.test(line));
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
