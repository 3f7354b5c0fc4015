/**
 * `npm run --silent sbom > sbom.cdx.json`: a bill of materials in CycloneDX 1.6 of the packages of the service and the
 * console. The same lock file gives the same bytes. `npm sbom --omit dev` is no alternative: it leaves out packages
 * that a development tool also needs, and about fifty of these run in production.
 */
import { readFileSync } from 'node:fs';
import {
  CONSOLE_PACKAGES,
  consolePackages,
  directDependencies,
  runtimePackages,
  type RuntimePackage,
} from './runtime-packages.ts';

type Component = {
  type: 'application' | 'library';
  'bom-ref': string;
  name: string;
  version: string;
  purl: string;
  licenses: { license: { id: string } }[];
  hashes?: { alg: 'SHA-512'; content: string }[];
};

export type Sbom = {
  bomFormat: 'CycloneDX';
  specVersion: '1.6';
  version: 1;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
};

/** Makes the bill of materials. A package that is installed in two folders is one component. */
export function sbom(): Sbom {
  const packages = [...runtimePackages(), ...consolePackages()];
  const refAt = new Map(packages.map((each) => [each.at, purlOf(each)]));
  const refsOf = (places: readonly string[]): string[] =>
    [...new Set(places.flatMap((at) => refAt.get(at) ?? []))].sort();
  const self = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    name: string;
    version: string;
    license: string;
  };
  const component = describe('application', { ...self, licence: self.license, integrity: undefined });
  const components = new Map(packages.map((each) => [purlOf(each), describe('library', each)]));
  const needs = new Map<string, string[]>([
    [
      component['bom-ref'],
      [...Object.keys(directDependencies()), ...CONSOLE_PACKAGES].map((name) => `node_modules/${name}`),
    ],
  ]);
  for (const each of packages) needs.set(purlOf(each), [...(needs.get(purlOf(each)) ?? []), ...each.needs]);
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component },
    components: [...components.values()].sort((a, b) => (a.purl < b.purl ? -1 : 1)),
    dependencies: [...needs].map(([ref, places]) => ({ ref, dependsOn: refsOf(places) })),
  };
}

function describe(
  type: Component['type'],
  { name, version, licence, integrity }: Pick<RuntimePackage, 'name' | 'version' | 'licence' | 'integrity'>,
): Component {
  const purl = purlOf({ name, version });
  const sha512 = integrity?.startsWith('sha512-') ? integrity.slice('sha512-'.length) : undefined;
  return {
    type,
    'bom-ref': purl,
    name,
    version,
    purl,
    licenses: licence === undefined ? [] : [{ license: { id: licence } }],
    ...(sha512 !== undefined && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512, 'base64').toString('hex') }],
    }),
  };
}

function purlOf({ name, version }: { name: string; version: string }): string {
  return `pkg:npm/${name.replace(/^@/, '%40')}@${version}`;
}

if (import.meta.main) console.log(JSON.stringify(sbom(), null, 2));
