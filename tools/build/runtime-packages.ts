import { readFileSync } from 'node:fs';

/** A package that is installed where the service runs. */
export type RuntimePackage = {
  name: string;
  version: string;
  licence: string | undefined;
  /** The hash from the registry: `sha512-` and base64. */
  integrity: string | undefined;
  /** Its folder. */
  at: string;
  /** The folders of the packages that it depends on. */
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

/** The packages that are bundled into the console and run in browsers. The console's build fails for any other. */
export const CONSOLE_PACKAGES: readonly string[] = [
  '@kurkle/color',
  '@preact/signals',
  '@preact/signals-core',
  '@tanstack/virtual-core',
  'chart.js',
  'preact',
  'preact-iso',
  'uqr',
];

const IN = 'node_modules/';

function readLock(): Record<string, Entry> {
  const text = readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { packages: Record<string, Entry> }).packages;
}

/** Names and exact versions, as in `package.json`. */
export function directDependencies(): Record<string, string> {
  return readLock()['']?.dependencies ?? {};
}

/** Returns these packages and all their dependencies, as Node finds them by the lock file, without optional ones. */
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

/** Looks for a package as Node does: in the folder of the package that needs it, then in the folders above. */
function locate(lock: Record<string, Entry>, name: string, from: string): string {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf(`/${IN}`)))) {
    const at = folder === '' ? `${IN}${name}` : `${folder}/${IN}${name}`;
    if (at in lock || folder === '') return at;
  }
}
