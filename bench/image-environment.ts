import { readFileSync } from 'node:fs';

/** What the Dockerfile sets for the service: what is measured is how it is operated. */
export function imageEnvironment(): Record<string, string> {
  const dockerfile = readFileSync(new URL('../Dockerfile', import.meta.url), 'utf8');
  const set = [...dockerfile.matchAll(/^ENV (\w+)=(?:"(.*)"|(\S*))$/gm)];
  return Object.fromEntries(set.map(([, name = '', quoted, plain]) => [name, quoted ?? plain ?? '']));
}
