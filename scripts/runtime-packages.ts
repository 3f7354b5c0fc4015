import { readFileSync } from 'node:fs';

/** A package that is installed where the service runs. */
export type RuntimePackage = {
  name: string;
  version: string;
  licence: string | undefined;
  /** As the registry has it, `sha512-` and base64. */
  integrity: string | undefined;
  /** Its folder. */
  at: string;
  /** The folders of those that it needs itself. */
  needs: string[];
};

type Entry = {
  version?: string;
  license?: string;
  integrity?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
};

/** What is bundled into the console, and so runs in browsers. Nothing else gets in: its build would fail. */
export const CONSOLE_PACKAGES: readonly string[] = [
  '@kurkle/color',
  '@preact/signals',
  '@preact/signals-core',
  '@tanstack/virtual-core',
  'chart.js',
  'preact',
  'preact-iso',
];

const IN = 'node_modules/';

function readLock(): Record<string, Entry> {
  const text = readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { packages: Record<string, Entry> }).packages;
}

/** Names and exact versions, as `package.json` has them. */
export function directDependencies(): Record<string, string> {
  return readLock()['']?.dependencies ?? {};
}

/** What comes with these, themselves included, by what the lock file says that Node will find; without optional packages. */
export function runtimePackages(of: readonly string[] = Object.keys(directDependencies())): RuntimePackage[] {
  const lock = readLock();
  const found = new Map<string, RuntimePackage>();
  const visit = (name: string, from: string): void => {
    const at = locate(lock, name, from);
    if (found.has(at)) return;
    const entry = lock[at];
    if (entry?.version === undefined)
      throw new Error(`${name}, which ${from || 'the service'} needs, is not in the lock file`);
    const { version, license: licence, integrity } = entry;
    const needs = needsOf(entry);
    found.set(at, { name, version, licence, integrity, at, needs: needs.map((needed) => locate(lock, needed, at)) });
    for (const needed of needs) visit(needed, at);
  };
  for (const name of of) visit(name, '');
  return [...found.values()].sort((a, b) => (a.at < b.at ? -1 : 1));
}

export function consolePackages(): RuntimePackage[] {
  return runtimePackages(CONSOLE_PACKAGES).filter(({ name }) => CONSOLE_PACKAGES.includes(name));
}

function needsOf({ dependencies, peerDependencies, peerDependenciesMeta }: Entry): string[] {
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => peerDependenciesMeta?.[name]?.optional !== true);
  return [...Object.keys(dependencies ?? {}), ...peers];
}

/** Beside the package that asks, then in the folders above it. */
function locate(lock: Record<string, Entry>, name: string, from: string): string {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf(`/${IN}`)))) {
    const at = folder === '' ? `${IN}${name}` : `${folder}/${IN}${name}`;
    if (at in lock || folder === '') return at;
  }
}
