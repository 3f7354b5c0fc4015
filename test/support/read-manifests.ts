import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { readConfig } from '../../src/config/config.ts';

/** In place of what only a deployment knows. */
export const DEPLOYED_SECRETS: Record<string, string> = {
  DATABASE_URL: 'postgres://expediter:word@localhost/expediter?host=/cloudsql/my-project:europe-west1:expediter',
  OWNER_DATABASE_URL:
    'postgres://expediter_owner:word@localhost/expediter?host=/cloudsql/my-project:europe-west1:expediter',
  SETTINGS_KEY: `2026-11:${randomBytes(32).toString('base64')}`,
  OPERATOR_TOKEN: '6a7e62dcabf5a5ffa7c11e6a4cb130a8ada56c60418cf55e85d7efa7482d8b76',
  OIDC_CLIENT_SECRET: 'word',
  ORDER_API_TOKEN: 'word',
};
/** How long a call to a POS may take. */
export const POS_CALL_S = 15;
/** For the last lines of its log. */
export const AIR_S = 1;
export const stopsWithinS = ({ DRAIN_DELAY_MS, DRAIN_FINISH_MS }: ReturnType<typeof readConfig>): number =>
  (DRAIN_DELAY_MS + DRAIN_FINISH_MS) / 1_000 + AIR_S;

export type Probe = {
  httpGet: { path: string; port: string | number };
  periodSeconds: number;
  failureThreshold: number;
};
export type Container = {
  image: string;
  command?: string[];
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  ports?: { name?: string; containerPort: number }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  resources: { limits: { memory: string } };
  securityContext?: Record<string, unknown>;
  volumeMounts?: unknown;
};
export type PodSpec = {
  containers: [Container];
  serviceAccountName?: string;
  terminationGracePeriodSeconds?: number;
  securityContext?: Record<string, unknown>;
  volumes?: unknown;
};
export type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string; annotations?: Record<string, string>; labels?: Record<string, string> };
  /** As its kind has it. */
  spec: unknown;
};

/** The environment as the container gets it, with something in place of each secret. */
export function environmentOf(container: Container): Record<string, string> {
  return Object.fromEntries(
    (container.env ?? []).flatMap(({ name, value, valueFrom }): [string, string][] => {
      if (valueFrom === undefined) return [[name, value ?? '']];
      const secret = DEPLOYED_SECRETS[name];
      // Only one that may be absent has no example here.
      if (secret === undefined) expect(valueFrom.secretKeyRef, name).toMatchObject({ optional: true });
      return secret === undefined ? [] : [[name, secret]];
    }),
  );
}

function mebibytes(memory: string): number {
  const [, count, unit] = /^(\d+)(Mi|Gi)$/.exec(memory) ?? [];
  return Number(count) * (unit === 'Gi' ? 1024 : 1);
}

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** Expects that the container is probed where the service answers, and never restarted by an outage of Postgres. */
export function expectProbes(container: Container): void {
  const health = read('src/http/health.ts');
  const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
  for (const probe of probes.filter((each) => each !== undefined)) {
    expect(health).toContain(`scope.get('${probe.httpGet.path}'`);
  }
  expect(container.livenessProbe?.httpGet.path).toBe('/healthz');
  expect(container.ports?.[0]?.containerPort).toBe(8080);
}

/** Expects the memory that the image lets V8 take, and half as much again. */
export function expectMemory(container: Container): void {
  const heap = Number(/--max-old-space-size=(\d+)/.exec(read('Dockerfile'))?.[1]);
  expect(mebibytes(container.resources.limits.memory)).toBeGreaterThanOrEqual(heap * 1.5);
}

/** The connections that the Postgres of `set-up.sh` has for the service. */
export function connectionsOfSetUp(): number {
  return Number(/max_connections=(\d+)/.exec(read('deploy/google-cloud/set-up.sh'))?.[1]) - 20;
}
