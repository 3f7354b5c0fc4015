/** The code of a version of the service, with the providers of a run. */
import { pathToFileURL } from 'node:url';
import { fileIn } from '../chaos/previous-version.ts';
import type { Registry } from '../../src/core/domain/provider.ts';
import type { buildServer } from '../../src/server/build-server.ts';
import type { readConfig } from '../../src/config/config.ts';
import type { loadProviders } from '../../src/providers/index.ts';

export type Code = {
  /** Such as `1.0.0`. Undefined for the code here. */
  version: string | undefined;
  buildServer: typeof buildServer;
  readConfig: typeof readConfig;
  registry: Registry;
};

/** A POS that takes up to 39 s for an answer, and may. */
export const SLOW = { integration: 'slow', attemptWithinS: 40, slowMs: 39_000 };
const OWN_PROVIDERS = ['pos-without-deduplication.ts', 'findable-pos.ts'];

/** @param folder of the project's files in this version */
export async function loadCode(folder: string, version?: string): Promise<Code> {
  const load = async (...files: string[]): Promise<unknown> => import(pathToFileURL(fileIn(folder, ...files)).href);
  const server = (await load('src/server/build-server.ts')) as Pick<Code, 'buildServer'>;
  const config = (await load('src/config/config.ts', 'src/server/config.ts')) as Pick<Code, 'readConfig'>;
  const providers = (await load('src/providers/index.ts')) as { loadProviders: typeof loadProviders };
  const own = OWN_PROVIDERS.map((file) => fileIn(folder, `world/pos/${file}`, `test/support/${file}`));
  const registry = new Map(await providers.loadProviders(own));
  const blind = registry.get('blind');
  if (blind === undefined) throw new Error('there is no provider blind');
  const { integration, attemptWithinS } = SLOW;
  registry.set(integration, { ...blind, integration, attemptWithinS });
  return { version, buildServer: server.buildServer, readConfig: config.readConfig, registry };
}
