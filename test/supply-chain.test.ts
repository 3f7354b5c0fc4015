import { globSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PERMISSIVE } from '../tools/build/list-licences.ts';
import {
  CONSOLE_PACKAGES,
  consolePackages,
  directDependencies,
  runtimePackages,
} from '../tools/build/runtime-packages.ts';
import { sbom } from '../tools/build/write-sbom.ts';
import { read } from './support/read-project.ts';

const readLock = (path: string) => (JSON.parse(read(path)) as { packages: Record<string, LockEntry> }).packages;
const lock = readLock('package-lock.json');
type LockEntry = {
  dev?: true;
  optional?: true;
  devOptional?: true;
  resolved?: string;
  link?: true;
  integrity?: string;
  hasInstallScript?: true;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
};

const REGISTRY = 'https://registry.npmjs.org/';
const EXACT = /^\d+\.\d+\.\d+(-[\w.]+)?$/;

const packages = runtimePackages();
const inConsole = consolePackages();
/** All that somebody gets who gets the service. */
const shipped = [...packages, ...inConsole];

describe('the packages that run with the service', () => {
  it('equal an installation without development packages', () => {
    const installed = Object.entries(lock)
      // The packages that are made here are links, and their folders.
      .filter(([at, { link }]) => at.startsWith('node_modules/') && !link)
      .filter(([, { dev, optional, devOptional }]) => !dev && !optional && !devOptional)
      .map(([at]) => at);
    expect(packages.map(({ at }) => at).sort()).toEqual(installed.sort());
  });

  it('have only permissive licences', () => {
    expect(shipped.filter(({ licence }) => licence === undefined || !PERMISSIVE.has(licence))).toEqual([]);
    for (const copyleft of ['GPL-3.0', 'AGPL-3.0', 'LGPL-3.0', 'MPL-2.0', 'SSPL-1.0', 'BUSL-1.1']) {
      expect(PERMISSIVE.has(copyleft)).toBe(false);
    }
  });

  it('come from the registry, and each has a hash', () => {
    for (const { at, integrity } of shipped) {
      expect(integrity, at).toMatch(/^sha512-/);
      // Unsaid, it is the registry; a package from a repository or a file would say so.
      expect(lock[at]?.resolved ?? REGISTRY, at).toContain(REGISTRY);
    }
  });

  it('have exact versions', () => {
    const { dependencies, devDependencies, optionalDependencies } = lock[''] ?? {};
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }))
      expect(version, name).toMatch(EXACT);
  });
});

/** The packages that would run a script. */
const scriptedIn = (of: Record<string, LockEntry>): string[] =>
  Object.entries(of).flatMap(([at, { hasInstallScript }]) =>
    hasInstallScript ? [at.replace(/^.*node_modules\//, '')] : [],
  );
const scripted = scriptedIn(lock);

it('every package with an install script is listed in package.json, and its script is off', () => {
  const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts?: Record<string, boolean> };
  expect(allowScripts).toEqual(Object.fromEntries(scripted.map((name) => [name, false])));
  expect(read('.npmrc')).toMatch(/^strict-allow-scripts=true$/m);
});

it.each([
  ['the benchmark compares with', 'tools/bench/peers'],
  ['renders and checks the chart', 'test/system/chart-tools'],
])(
  "the packages in $1 are separate from the service's, have exact versions and come from the registry",
  (_what, folder) => {
    const { '': self, ...others } = readLock(`${folder}/package-lock.json`);
    for (const [name, version] of Object.entries(self?.dependencies ?? {})) {
      expect(version, name).toMatch(EXACT);
      expect(lock[`node_modules/${name}`], name).toBeUndefined();
    }
    for (const [at, { resolved }] of Object.entries(others)) expect(resolved ?? REGISTRY, at).toContain(REGISTRY);
  },
);

describe.each(globSync('examples/platforms/*/shop'))('the packages of %s', (folder) => {
  const { '': self, ...others } = readLock(`${folder}/package-lock.json`);

  it('have exact versions, a hash each, and come from the registry', () => {
    for (const [name, version] of Object.entries({ ...self?.dependencies, ...self?.devDependencies }))
      expect(version, name).toMatch(EXACT);
    for (const [at, { resolved, integrity }] of Object.entries(others)) {
      expect(integrity, at).toMatch(/^sha512-/);
      expect(resolved ?? REGISTRY, at).toContain(REGISTRY);
    }
  });

  it('run no script', () => {
    const { allowScripts } = JSON.parse(read(`${folder}/package.json`)) as { allowScripts?: Record<string, boolean> };
    expect(allowScripts).toEqual(Object.fromEntries(scriptedIn(others).map((name) => [name, false])));
  });
});

describe('the packages in the console', () => {
  it('are listed, and not installed with the service', () => {
    expect(inConsole.map(({ name }) => name)).toEqual(CONSOLE_PACKAGES.toSorted());
    const installed = new Set(packages.map(({ at }) => at));
    expect(inConsole.filter(({ at }) => installed.has(at))).toEqual([]);
  });
});

describe('docs/dependencies.md', () => {
  const [service = '', rest = ''] = read('docs/dependencies.md').split('## In the console');
  const [inBrowser = '', others = ''] = rest.split('## Licences');
  const rows = (section: string): { name: string; licence: string; why: string }[] =>
    [...section.matchAll(/^\| ([@a-z][\w@./-]*) +\| (\S+) +\| (.+?) +\|$/gm)]
      .map(([, name = '', licence = '', why = '']) => ({ name, licence, why }))
      .filter(({ name }) => name !== 'package');
  const licencesOf = (told: readonly { name: string; licence: string | undefined }[]) =>
    Object.fromEntries(told.map(({ name, licence }) => [name, licence]));

  it('lists every chosen package with its licence and the reason for it', () => {
    const chosen = packages.filter(({ name, at }) => at === `node_modules/${name}` && name in directDependencies());
    expect(licencesOf(rows(service))).toEqual(licencesOf(chosen));
    expect(licencesOf(rows(inBrowser))).toEqual(licencesOf(inConsole));
    for (const { name, why } of [...rows(service), ...rows(inBrowser)]) expect(why.length, name).toBeGreaterThan(10);
  });

  it('names every licence', () => {
    for (const licence of new Set(shipped.map((each) => each.licence ?? ''))) expect(others).toContain(licence);
  });

  it('names every package with an install script', () => {
    const [, section = ''] = /^## Scripts at installation\n(.*?)^## /ms.exec(others) ?? [];
    const told = [...section.matchAll(/^- (.*?)(?:,? which )/gms)].flatMap(([, names = '']) =>
      [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    );
    expect(new Set(told)).toEqual(new Set(scripted));
  });
});

describe('the bill of materials', () => {
  const bill = sbom();

  it('lists every package once, with its licence, hash and dependencies', () => {
    const names = new Set(shipped.map(({ name, version }) => `${name}@${version}`));
    expect(bill.components.map(({ name, version }) => `${name}@${version}`).sort()).toEqual([...names].sort());
    for (const { licenses, hashes, purl } of bill.components) {
      expect(licenses).toHaveLength(1);
      expect(hashes?.[0]?.content).toMatch(/^[0-9a-f]{128}$/);
      expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@[\d.]+/);
    }
    const refs = new Set([bill.metadata.component['bom-ref'], ...bill.components.map((each) => each['bom-ref'])]);
    expect(new Set(bill.dependencies.map(({ ref }) => ref))).toEqual(refs);
    for (const { dependsOn } of bill.dependencies) for (const ref of dependsOn) expect(refs).toContain(ref);
    const own = bill.dependencies.find(({ ref }) => ref === bill.metadata.component['bom-ref']);
    expect(own?.dependsOn).toHaveLength(Object.keys(directDependencies()).length + inConsole.length);
  });

  it('is reproducible', () => expect(JSON.stringify(sbom())).toBe(JSON.stringify(bill)));
});
