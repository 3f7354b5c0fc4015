import { readFileSync, readdirSync } from 'node:fs';
import type { Plugin } from 'vite';
import { CONSOLE_PACKAGES, consolePackages } from './runtime-packages.ts';

const FILE = 'licences.txt';
/** Matches the name of the package in a path. If packages are nested, it matches the innermost one. */
const PACKAGE = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/;

/** Writes the licences of the bundled packages next to the bundle. Fails for a package not in CONSOLE_PACKAGES. */
export function bundleNotices(): Plugin {
  return {
    name: 'expediter:bundle-notices',
    generateBundle(_options, bundle) {
      const bundled = new Set<string>();
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue;
        for (const module of Object.keys(chunk.modules)) {
          const name = PACKAGE.exec(module)?.[1];
          if (name !== undefined) bundled.add(name);
        }
      }
      const unknown = [...bundled].filter((name) => !CONSOLE_PACKAGES.includes(name));
      if (unknown.length > 0) {
        this.error(`${unknown.join(', ')} would be in the console: add it to CONSOLE_PACKAGES, or remove it`);
      }
      const notices = consolePackages()
        .filter(({ name }) => bundled.has(name))
        .map(({ name, version, licence, at }) => `${name} ${version} (${licence})\n\n${licenceText(at)}`);
      this.emitFile({ type: 'asset', fileName: FILE, source: notices.join(`\n\n${'-'.repeat(80)}\n\n`) });
    },
  };
}

function licenceText(at: string): string {
  const folder = new URL(`../../${at}/`, import.meta.url);
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (file === undefined) throw new Error(`${at} has no file with its licence`);
  return readFileSync(new URL(file, folder), 'utf8').trim();
}
