/** The Helm chart, rendered by Helm with the values of docs/deploy.md, and with others for all that it can do. */
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_NAMES, isPushed, readConfig, readConfigOf } from '../../src/config/config.ts';
import { documentedValues, FULL_VALUES } from '../support/chart-values.ts';
import { copyProject } from '../support/pack-package.ts';
import {
  AIR_S,
  connectionsOfSetUp,
  environmentOf,
  expectMemory,
  expectProbes,
  POS_CALL_S,
  stopsWithinS,
  type Manifest,
  type PodSpec,
} from '../support/read-manifests.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { read, ROOT } from '../support/read-project.ts';
import { CHART, faultsOf, HELM, helm, needsHelm, render } from './render-chart.ts';

const documented = documentedValues();

type Labels = Record<string, string>;
type Workload = {
  replicas?: number;
  selector: { matchLabels: Labels };
  template: { metadata: { labels: Labels }; spec: PodSpec };
};
type ServiceSpec = { type?: string; selector: Labels; ports: { port: number; targetPort: string }[] };

let minimal: Manifest[];
let full: Manifest[];
beforeAll(async () => {
  needsHelm();
  [minimal, full] = await Promise.all([render(documented), render(FULL_VALUES)]);
});

function find(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.find((each) => each.kind === kind && (name === undefined || each.metadata.name === name));
  if (found === undefined) throw new Error(`there is no ${kind} ${name ?? ''}`);
  return found;
}
const specOf = (manifests: readonly Manifest[], kind: string, name?: string): unknown =>
  find(manifests, kind, name).spec;
const deploymentOf = (manifests: readonly Manifest[]): Workload => specOf(manifests, 'Deployment') as Workload;

it('the chart passes helm lint', async () => {
  for (const values of [documented, FULL_VALUES]) {
    const { code, out } = await helm(['lint', CHART, '--strict', '--quiet'], values);
    expect(out + code).toBe('0');
  }
});

it("the chart's manifests are valid for Kubernetes and its operators", async () => {
  expect(await faultsOf(minimal)).toEqual([]);
  expect(await faultsOf(full)).toEqual([]);
  const wrong = structuredClone(minimal);
  Object.assign(deploymentOf(wrong).template.spec, { restartPolicy: 'Sometimes' });
  Object.assign(specOf(wrong, 'NetworkPolicy') as object, { policyType: [] });
  Object.assign(specOf(wrong, 'Job') as object, { backoffLimit: 0.5 });
  const faults = (await faultsOf(wrong)).join('\n');
  for (const name of ['Sometimes', '"policyType"', 'backoffLimit']) expect(faults).toContain(name);
});

it('the chart without values fails, and names each that is missing', async () => {
  const { code, error } = await helm(['template', 'expediter', CHART]);
  expect(code).not.toBe(0);
  for (const name of ['/image/repository', 'ORDER_API_URL', 'PUBLIC_URL']) {
    expect(error).toContain(name);
  }
});

it('the chart makes exactly the manifests that its values request', () => {
  const usual = ['Deployment', 'HorizontalPodAutoscaler', 'Job', 'NetworkPolicy', 'PodDisruptionBudget'];
  const inAll = [...usual, 'Service', 'Service', 'ServiceAccount'];
  const gateway = ['BackendTrafficPolicy', 'EnvoyProxy', 'Gateway', 'HTTPRoute', 'HealthCheckPolicy', 'Ingress'];
  const others = ['ConfigMap', 'ExternalSecret', 'ExternalSecret', 'PodMonitor', 'PrometheusRule'];
  expect(minimal.map(({ kind }) => kind).sort()).toEqual(inAll);
  expect(full.map(({ kind }) => kind).sort()).toEqual([...inAll, ...gateway, ...others].sort());
});

it('the chart is valid without the autoscaler, the policy, the account, the owner and the Gateway', async () => {
  const some = await render({
    ...documented,
    replicas: 4,
    autoscaling: { enabled: false },
    networkPolicy: { enabled: false },
    serviceAccount: { existingName: 'theirs' },
    existingOwnerSecret: '',
    externalSecrets: { enabled: true, secretStoreRef: { name: 'vault' } },
    gateway: { enabled: true, parentRefs: [{ name: 'shared', namespace: 'gateways' }] },
  });
  const kinds = ['Deployment', 'ExternalSecret', 'HTTPRoute', 'Job', 'PodDisruptionBudget', 'Service', 'Service'];
  expect(some.map(({ kind }) => kind).sort()).toEqual(kinds);
  expect(await faultsOf(some)).toEqual([]);
  expect(deploymentOf(some).replicas).toBe(4);
  expect(deploymentOf(some).template.spec.serviceAccountName).toBe('theirs');
  expect((specOf(some, 'HTTPRoute') as { parentRefs: unknown }).parentRefs).toEqual([
    { name: 'shared', namespace: 'gateways' },
  ]);
  const [migration] = (specOf(some, 'Job') as Workload).template.spec.containers;
  expect(migration.env?.map(({ name }) => name)).toEqual(['DATABASE_URL']);
  expect(JSON.stringify(find(some, 'ExternalSecret'))).not.toContain('OWNER_DATABASE_URL');
});

it('the chart without a project of Google asks for no push and no spill, and takes the receiver from the Secret', async () => {
  const { GOOGLE_CLOUD_PROJECT: _, PUSH_SERVICE_ACCOUNT: __, ...config } = documented.config;
  const [container] = deploymentOf(await render({ ...documented, config })).template.spec.containers;
  const environment = environmentOf(container);
  for (const name of ['PUSH_AUDIENCE', 'SPILL_TOPIC']) expect(environment).not.toHaveProperty(name);
  const secret = container.env?.filter(({ name }) => name.startsWith('STATUS_WEBHOOK_'));
  expect(secret?.map(({ name, valueFrom }) => valueFrom?.secretKeyRef?.key === name)).toEqual([true, true]);
  const STATUS_WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 's').toString('base64')}`;
  const given = { STATUS_WEBHOOK_URL: 'https://orders.example.com/statuses', STATUS_WEBHOOK_SECRET };
  expect(isPushed(readConfig({ ...environment, ...given }))).toBe(false);
});

it('two installations in one namespace have no manifest in common', async () => {
  const { out } = await helm(['template', 'second', CHART, '--namespace', 'expediter'], FULL_VALUES);
  const names = full.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  const theirs = [...out.matchAll(/^kind: (\w+)\nmetadata:\n {2}name: (\S+)/gm)].map(
    ([, kind, name]) => `${kind} ${name}`,
  );
  // The Secrets are yours to name.
  expect(theirs.filter((name) => names.includes(name))).toEqual([
    'ExternalSecret theirs',
    'ExternalSecret theirs-owner',
  ]);
  expect(theirs).toContain('Deployment second-expediter');
  expect(out).not.toMatch(/instance: expediter$/m);
});

describe.each(['documented', 'full'] as const)('the service with the %s values', (which) => {
  let environment: Record<string, string>;
  let container: PodSpec['containers'][0];
  let manifests: Manifest[];
  beforeAll(() => {
    manifests = which === 'full' ? full : minimal;
    [container] = deploymentOf(manifests).template.spec.containers;
    environment = environmentOf(container);
  });

  it('has every required variable once, and no unknown one', () => {
    const { GOOGLE_APPLICATION_CREDENTIALS, ...ours } = environment;
    expect(GOOGLE_APPLICATION_CREDENTIALS).toBe(which === 'full' ? '/etc/google/credentials.json' : undefined);
    expect(Object.keys(ours).filter((name) => !(CONFIG_NAMES as readonly string[]).includes(name))).toEqual([]);
    expect(container.env?.length).toBe(new Set(container.env?.map(({ name }) => name)).size);
    const config = readConfig(ours);
    expect(config.PUSH_AUDIENCE).toBe('https://expediter.example.com/pubsub/push');
    expect(ours, 'the owner of the tables is for the migration').not.toHaveProperty('OWNER_DATABASE_URL');
    if (which === 'full') expect(ours).toMatchObject({ BODY_BUDGET: '67108864', OTEL_TRACES_SAMPLER_ARG: '0.1' });
  });

  it('has probes at routes that exist, and enough memory for V8', () => {
    expectProbes(container);
    expectMemory(container);
  });

  it('has time to drain and to finish a call to a POS', () => {
    const config = readConfig(environment);
    expect(config.DRAIN_DELAY_MS).toBe(which === 'full' ? 10_000 : 8_000);
    expect(deploymentOf(manifests).template.spec.terminationGracePeriodSeconds).toBe(stopsWithinS(config) + 1);
    expect(stopsWithinS(config), 'a call that had begun is over').toBeGreaterThan(POS_CALL_S + AIR_S);
    const { readinessProbe } = container;
    // Seen as not ready well within the drain.
    const seenAfter = (readinessProbe?.periodSeconds ?? Infinity) * (readinessProbe?.failureThreshold ?? 1);
    expect(seenAfter * 1_000).toBeLessThan(config.DRAIN_DELAY_MS);
    expect(readinessProbe?.httpGet.path).toBe('/readyz');
  });

  it('runs, like its migration, as a non-root user with a read-only root', () => {
    const pods = [deploymentOf(manifests), specOf(manifests, 'Job') as Workload].map(({ template }) => template.spec);
    for (const { securityContext, containers } of pods) {
      const { runAsNonRoot, runAsUser, seccompProfile } = securityContext ?? {};
      expect({ runAsNonRoot, runAsUser, seccompProfile }).toEqual({
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(containers[0].securityContext).toEqual({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
      const digest = `ghcr.io/acme/expediter@sha256:${'0e'.repeat(32)}`;
      expect(containers[0].image).toBe(which === 'full' ? digest : 'registry.internal:5000/expediter:1.0');
      expect(containers[0].volumeMounts).toEqual(which === 'full' ? FULL_VALUES['extraVolumeMounts'] : undefined);
    }
    expect(pods[0]?.volumes).toEqual(pods[1]?.volumes);
  });

  it('is matched by every selector, and its migration only by that of the network policy', () => {
    const pods = deploymentOf(manifests);
    const migration = (specOf(manifests, 'Job') as Workload).template.metadata.labels;
    const selectors = [
      pods.selector.matchLabels,
      (specOf(manifests, 'PodDisruptionBudget') as Workload).selector.matchLabels,
      ...manifests.filter(({ kind }) => kind === 'Service').map(({ spec }) => (spec as ServiceSpec).selector),
      ...manifests
        .filter(({ kind }) => kind === 'PodMonitor')
        .map(({ spec }) => (spec as Workload).selector.matchLabels),
    ];
    for (const selector of selectors) {
      expect(pods.template.metadata.labels).toMatchObject(selector);
      expect(migration).not.toMatchObject(selector);
    }
    const policy = (specOf(manifests, 'NetworkPolicy') as { podSelector: { matchLabels: Labels } }).podSelector
      .matchLabels;
    for (const labels of [pods.template.metadata.labels, migration]) expect(labels).toMatchObject(policy);
  });

  it('has a port for operators that only the allowed sources reach', () => {
    const { PORT, OPERATOR_PORT } = readConfig(environment);
    expect(container.ports).toEqual([
      { name: 'http', containerPort: PORT },
      { name: 'operator', containerPort: OPERATOR_PORT },
    ]);
    const outside = specOf(manifests, 'Service', 'expediter') as ServiceSpec;
    const operators = specOf(manifests, 'Service', 'expediter-operator') as ServiceSpec;
    expect(outside.ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(operators.ports.map(({ targetPort }) => targetPort)).toEqual(['operator']);
    // ClusterIP.
    expect([outside.type, operators.type]).toEqual([undefined, undefined]);
    type Ingress = { from?: unknown[]; ports: { port: number }[] };
    const { ingress } = specOf(manifests, 'NetworkPolicy') as { ingress: Ingress[] };
    const anybody = ingress.filter(({ from }) => from === undefined).flatMap((rule) => rule.ports);
    expect(anybody.map(({ port }) => port)).toEqual([PORT]);
    const some = ingress.filter(({ from }) => (from?.length ?? 0) > 0).flatMap((rule) => rule.ports);
    expect(some.map(({ port }) => port)).toEqual([OPERATOR_PORT]);
  });
});

it('the connections of all pods, and of one more during a rollout, fit into the Postgres of set-up.sh', () => {
  const { maxReplicas } = specOf(minimal, 'HorizontalPodAutoscaler') as { maxReplicas: number };
  const { POOL_SIZE } = readConfig(environmentOf(deploymentOf(minimal).template.spec.containers[0]));
  expect((maxReplicas + 1) * POOL_SIZE).toBeLessThan(connectionsOfSetUp());
});

describe('the migration of the chart', () => {
  it('runs before each version with only the database variables of both roles', () => {
    const job = find(minimal, 'Job');
    expect(job.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
    const [container] = (job.spec as Workload).template.spec.containers;
    expect(container.command).toEqual(['expediter', 'migrate']);
    const environment = environmentOf(container);
    expect(Object.keys(environment)).toEqual(['DATABASE_URL', 'OWNER_DATABASE_URL']);
    expect(() => readConfigOf(environment, 'DATABASE_URL', 'OWNER_DATABASE_URL')).not.toThrow();
    const secrets = container.env?.map(({ valueFrom }) => valueFrom?.secretKeyRef.name);
    expect(secrets).toEqual(['expediter', 'expediter-owner']);
    const ofService = deploymentOf(minimal).template.spec.containers[0].env ?? [];
    expect(ofService.map(({ valueFrom }) => valueFrom?.secretKeyRef.name)).not.toContain('expediter-owner');
  });

  it('runs after External Secrets has made its secrets, which an upgrade keeps', () => {
    type ExternalSecret = { target: object; secretStoreRef: object; data: { secretKey: string; remoteRef: object }[] };
    const [service, owner] = [find(full, 'ExternalSecret', 'theirs'), find(full, 'ExternalSecret', 'theirs-owner')];
    for (const { metadata, spec } of [service, owner]) {
      const annotations = metadata.annotations ?? {};
      expect(annotations['helm.sh/hook']).toBe(find(full, 'Job').metadata.annotations?.['helm.sh/hook']);
      expect(Number(annotations['helm.sh/hook-weight'])).toBeLessThan(0);
      const { target, secretStoreRef } = spec as ExternalSecret;
      // Each upgrade makes this object again, and an owned Secret would go with the old one.
      expect(target).toEqual({ creationPolicy: 'Orphan', deletionPolicy: 'Retain' });
      expect(secretStoreRef).toEqual({ kind: 'SecretStore', name: 'vault' });
    }
    const [ofService, ofOwner] = [service, owner].map(({ spec }) => (spec as ExternalSecret).data);
    const names = ['DATABASE_URL', 'OIDC_CLIENT_SECRET', 'OPERATOR_TOKEN', 'ORDER_API_TOKEN', 'SETTINGS_KEY'];
    expect(ofService?.map(({ secretKey }) => secretKey)).toEqual(names);
    expect(ofService?.[1]?.remoteRef).toEqual({ key: 'expediter', property: 'oidc' });
    expect(ofOwner?.map(({ secretKey }) => secretKey)).toEqual(['OWNER_DATABASE_URL']);
  });
});

it('the HTTPRoute sends exactly the public paths to the service, and cuts no stream', () => {
  type Rule = { matches: { path: { value: string } }[]; timeouts?: object; backendRefs: object[] };
  const { rules, hostnames } = specOf(full, 'HTTPRoute') as { rules: Rule[]; hostnames: string[] };
  expect(hostnames).toEqual(['expediter.example.com']);
  const paths = rules.flatMap(({ matches }) => matches.map(({ path }) => path.value)).join(' ');
  expect(paths).toBe('/webhook/ /answer/ /pubsub/push /signal /readyz /availability /follow');
  for (const { backendRefs } of rules) expect(backendRefs).toEqual([{ name: 'expediter', port: 80 }]);
  expect(rules.find(({ matches }) => matches[0]?.path.value === '/follow')?.timeouts).toEqual({ request: '0s' });
  const { circuitBreaker } = specOf(full, 'BackendTrafficPolicy') as { circuitBreaker: Record<string, number> };
  const { maxReplicas } = specOf(minimal, 'HorizontalPodAutoscaler') as { maxReplicas: number };
  const { FOLLOW_STREAMS_MAX } = readConfig(environmentOf(deploymentOf(minimal).template.spec.containers[0]));
  expect(Math.min(...Object.values(circuitBreaker))).toBeGreaterThan(FOLLOW_STREAMS_MAX * maxReplicas);
  expect(Object.keys(circuitBreaker).sort()).toEqual(['maxConnections', 'maxParallelRequests', 'maxPendingRequests']);
});

it('the chart gives Prometheus the token and the alert rules, and Grafana the dashboard', () => {
  type Monitor = { jobLabel: string; podMetricsEndpoints: [{ port: string; authorization: { credentials: object } }] };
  const { jobLabel, podMetricsEndpoints } = specOf(full, 'PodMonitor') as Monitor;
  expect(deploymentOf(full).template.metadata.labels).toHaveProperty([jobLabel]);
  expect(podMetricsEndpoints[0]).toMatchObject({
    port: 'operator',
    authorization: { credentials: { name: 'metrics', key: 'bearer' } },
  });
  const alerts = read('deploy/monitoring/alerts.yaml');
  expect(specOf(full, 'PrometheusRule')).toEqual(
    parse(alerts.replaceAll('docs/runbook.md', 'https://wiki.example.com/runbook')),
  );
  const { data } = find(full, 'ConfigMap') as unknown as { data: Record<string, string> };
  expect(data['expediter.json']).toBe(read('deploy/monitoring/dashboard.json'));
  for (const kind of ['PodMonitor', 'PrometheusRule']) {
    expect(find(full, kind).metadata.labels).toMatchObject({ release: 'prometheus' });
  }
});

it('a release has its notes, its packages, and a chart with its image', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'release-'));
  try {
    const project = copyProject(folder);
    for (const name of ['tools', 'deploy', 'CHANGELOG.md', 'package-lock.json']) {
      cpSync(join(ROOT, name), join(project, name), { recursive: true });
    }
    const image = `ghcr.io/acme/expediter@sha256:${'0e'.repeat(32)}`;
    const path = `${HELM}:${process.env['PATH']}`;
    const words = ['tools/build/build-release.ts', '--image', image];
    const { code, error } = await runProgram(process.execPath, words, { PATH: path, HOME: folder }, { cwd: project });
    expect({ code, error: code === 0 ? '' : error }).toEqual({ code: 0, error: '' });
    const { version } = JSON.parse(read('package.json')) as { version: string };
    const packed = ['', '-follow', '-kit', '-platform'].map((name) => `expediter${name}-${version}.tgz`);
    expect(readdirSync(join(project, 'release')).sort()).toEqual([...packed, 'notes.md', 'sbom.cdx.json'].sort());
    const { image: _theirs, ...values } = FULL_VALUES;
    const made = await render(
      { ...values, image: { pullPolicy: 'Always' } },
      join(project, 'release', packed[0] ?? ''),
    );
    expect(made).toEqual(full);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
