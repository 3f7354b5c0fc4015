import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PERMISSIVE } from '../scripts/list-licences.ts';
import { CONSOLE_PACKAGES, consolePackages, directDependencies, runtimePackages } from '../scripts/runtime-packages.ts';
import { sbom } from '../scripts/write-sbom.ts';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const lock = (JSON.parse(read('package-lock.json')) as { packages: Record<string, LockEntry> }).packages;
type LockEntry = { dev?: true; optional?: true; devOptional?: true; resolved?: string; integrity?: string };

const REGISTRY = 'https://registry.npmjs.org/';

const packages = runtimePackages();
const inConsole = consolePackages();
/** All that somebody gets who gets the service. */
const shipped = [...packages, ...inConsole];

describe('what runs with the service', () => {
  it('is all that an installation without tools for developers has', () => {
    const installed = Object.entries(lock)
      .filter(([at, { dev, optional, devOptional }]) => at !== '' && !dev && !optional && !devOptional)
      .map(([at]) => at);
    expect(packages.map(({ at }) => at).sort()).toEqual(installed.sort());
  });

  it('is under licences that ask for no more than their text', () => {
    expect(shipped.filter(({ licence }) => licence === undefined || !PERMISSIVE.has(licence))).toEqual([]);
    for (const copyleft of ['GPL-3.0', 'AGPL-3.0', 'LGPL-3.0', 'MPL-2.0', 'SSPL-1.0', 'BUSL-1.1']) {
      expect(PERMISSIVE.has(copyleft)).toBe(false);
    }
  });

  it('comes from the registry, with a hash', () => {
    for (const { at, integrity } of shipped) {
      expect(integrity, at).toMatch(/^sha512-/);
      // Unsaid, it is the registry; a package from a repository or a file would say so.
      expect(lock[at]?.resolved ?? REGISTRY, at).toContain(REGISTRY);
    }
  });

  it('is at exact versions', () => {
    for (const [name, version] of Object.entries(directDependencies()))
      expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
  });
});

describe('what is in the console', () => {
  it('is known, and no part of what is installed where the service runs', () => {
    expect(inConsole.map(({ name }) => name)).toEqual(CONSOLE_PACKAGES.toSorted());
    const installed = new Set(packages.map(({ at }) => at));
    expect(inConsole.filter(({ at }) => installed.has(at))).toEqual([]);
  });

  it('is in docs/dependencies.md, each with its version, its licence and why it is there', () => {
    const [, section = ''] = read('docs/dependencies.md').split('## In the console');
    const rows = section.matchAll(
      /^\| ([@a-z][\w@./-]*) +\| ([\d.]+) +\| (\S+) +\| 20\d\d-\d\d-\d\d +\| (.{10,}?) +\|$/gm,
    );
    const told = [...rows].map(([, name, version, licence]) => ({ name, version, licence }));
    const are = inConsole.map(({ name, version, licence }) => ({ name, version, licence }));
    const byName = (a: { name?: string | undefined }, b: { name?: string | undefined }): number =>
      (a.name ?? '') < (b.name ?? '') ? -1 : 1;
    expect(told.sort(byName)).toEqual(are.sort(byName));
  });
});

describe('docs/dependencies.md', () => {
  const document = read('docs/dependencies.md');
  const rows = [
    ...document.matchAll(
      /^\| ([@a-z][\w@/-]*) +\| ([\d.]+) +\| (\S+) +\| (\S+) +\| (\d+) +\| [\d. /]+ +\| (.+?) +\|$/gm,
    ),
  ];

  it('has every dependency, with its version, its licence, what comes with it and why it is there', () => {
    const told = rows.map(([, name, version, licence, , come]) => ({ name, version, licence, come: Number(come) }));
    const are = Object.entries(directDependencies()).map(([name, version]) => ({
      name,
      version,
      licence: packages.find(({ at }) => at === `node_modules/${name}`)?.licence,
      come: runtimePackages([name]).length - 1,
    }));
    const byName = (a: { name?: string | undefined }, b: { name?: string | undefined }): number =>
      (a.name ?? '') < (b.name ?? '') ? -1 : 1;
    expect(told.sort(byName)).toEqual(are.sort(byName));
    for (const [, name, , , of, , why = ''] of rows) {
      expect(of, name).toMatch(/^20\d\d-\d\d-\d\d$/);
      expect(why.length, name).toBeGreaterThan(10);
    }
  });

  it('counts them', () => {
    expect(document).toContain(`${rows.length} packages are chosen`);
    expect(document).toContain(`they are ${packages.length},`);
    for (const licence of new Set(packages.map((each) => each.licence ?? ''))) expect(document).toContain(licence);
  });
});

describe('the bill of materials', () => {
  const bill = sbom();

  it('has every package once, with licence and hash, and what needs what', () => {
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

  it('is the same each time', () => expect(JSON.stringify(sbom())).toBe(JSON.stringify(bill)));
});
