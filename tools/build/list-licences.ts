/** `npm run licences`: lists the packages of service and console with their licences. Exits 1 if one is not allowed. */
import { consolePackages, runtimePackages } from './runtime-packages.ts';

/** Licences that only require their text to be included. Each package contains it. */
export const PERMISSIVE: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'MIT-0',
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
    console.error(`error: ${name}@${version} has ${licence ?? 'no known licence'}: check whether it may be used`);
  }
  process.exitCode = refused.length > 0 ? 1 : 0;
}
