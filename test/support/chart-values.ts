import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export type Values = { config: Record<string, string | number>; [name: string]: unknown };

/** The values that docs/deploy.md writes, made by its own command. */
export function documentedValues(): Values {
  const document = readFileSync(fileURLToPath(new URL('../../docs/deploy.md', import.meta.url)), 'utf8');
  const [, command = 'exit 1'] = /^```sh\n(cat >values\.yaml [^]*?)^```$/m.exec(document) ?? [];
  const cwd = mkdtempSync(join(tmpdir(), 'values-'));
  try {
    const env = {
      ...process.env,
      IMAGE: 'registry.internal:5000/expediter:1.0',
      PROJECT: 'my-project',
      PUBLIC_URL: 'https://expediter.example.com',
      ORDER_API_URL: 'https://orders.example.com/graphql',
    };
    execFileSync('bash', ['-eu'], { cwd, input: command, env });
    return parse(readFileSync(join(cwd, 'values.yaml'), 'utf8')) as Values;
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

/** Values that set everything to something else than the chart has. */
export const FULL_VALUES: Values = {
  image: {
    repository: 'ghcr.io/acme/expediter',
    digest: `sha256:${'0e'.repeat(32)}`,
    pullPolicy: 'Always',
  },
  imagePullSecrets: [{ name: 'registry' }],
  config: {
    HOST: '::',
    GOOGLE_CLOUD_PROJECT: 'my-project',
    ORDER_API_URL: 'https://orders.example.com/graphql',
    PUBLIC_URL: 'https://expediter.example.com/',
    PUSH_SERVICE_ACCOUNT: 'expediter-push@my-project.iam.gserviceaccount.com',
    DRAIN_DELAY_MS: 10_000,
    BODY_BUDGET: 67_108_864,
    OTEL_TRACES_SAMPLER_ARG: 0.1,
    FOLLOW_TOKEN_KEYS: 'https://orders.example.com/jwks.json',
    FOLLOW_TOKEN_AUDIENCE: 'https://expediter.example.com/follow',
  },
  existingSecret: 'theirs',
  existingOwnerSecret: 'theirs-owner',
  externalSecrets: {
    enabled: true,
    secretStoreRef: { kind: 'SecretStore', name: 'vault' },
    refreshInterval: '10m',
    remoteRefs: { OIDC_CLIENT_SECRET: { key: 'expediter', property: 'oidc' } },
  },
  serviceAccount: { annotations: { 'iam.gke.io/gcp-service-account': 'expediter@my-project.iam.gserviceaccount.com' } },
  autoscaling: { minReplicas: 3, maxReplicas: 8, averageCpu: '500m' },
  resources: { requests: { cpu: '500m' }, limits: { memory: '1Gi' } },
  podLabels: { 'azure.workload.identity/use': 'true' },
  podAnnotations: { 'example.com/team': 'orders' },
  extraContainers: [{ name: 'sql-proxy', image: 'gcr.io/cloud-sql-connectors/cloud-sql-proxy:2' }],
  affinity: { podAntiAffinity: {} },
  migration: {
    podLabels: { team: 'orders' },
    podAnnotations: { 'sidecar.istio.io/inject': 'false' },
    initContainers: [{ name: 'sql-proxy', image: 'cloud-sql-proxy:2', restartPolicy: 'Always' }],
  },
  service: { annotations: { 'cloud.google.com/neg': '{"ingress": true}' } },
  nodeSelector: { pool: 'services' },
  tolerations: [{ key: 'services', operator: 'Exists' }],
  priorityClassName: 'high',
  extraVolumes: [{ name: 'ca', configMap: { name: 'postgres-ca' } }],
  extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/postgres', readOnly: true }],
  extraEnv: [{ name: 'GOOGLE_APPLICATION_CREDENTIALS', value: '/etc/google/credentials.json' }],
  networkPolicy: { extraEgress: [{ ports: [{ port: 4318, protocol: 'TCP' }] }] },
  gateway: { enabled: true, className: 'eg', tlsSecret: 'certificate', gkeHealthCheck: true },
  ingress: {
    enabled: true,
    className: 'nginx',
    annotations: { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '1860' },
    tlsSecret: 'tls',
  },
  podMonitor: {
    enabled: true,
    labels: { release: 'prometheus' },
    interval: '15s',
    tokenSecret: 'metrics',
    tokenKey: 'bearer',
  },
  prometheusRule: {
    enabled: true,
    labels: { release: 'prometheus' },
    runbookUrl: 'https://wiki.example.com/runbook',
  },
  dashboard: { enabled: true, labels: { grafana_dashboard: 'orders' } },
};
