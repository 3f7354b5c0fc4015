/** `npm run licences`: every package that runs with the service or is in its console, and its licence; exits 1 at one that we may not take. */
import { consolePackages, runtimePackages } from './runtime-packages.ts';

/** They ask for no more than their text, which stays in the package. */
export const PERMISSIVE: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
]);

if (import.meta.main) {
  const packages = [...runtimePackages(), ...consolePackages()];
  for (const { name, version, licence } of packages) console.log(`${name}@${version} ${licence ?? 'unknown'}`);
  const refused = packages.filter(({ licence }) => licence === undefined || !PERMISSIVE.has(licence));
  for (const { name, version, licence } of refused) {
    console.error(`error: ${name}@${version} is under ${licence ?? 'no licence that it names'}: a person should look`);
  }
  process.exitCode = refused.length > 0 ? 1 : 0;
}
