/** Lets the service's code find the simulated world. Import this first: what is loaded before it has the real one. */
import { registerHooks } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MUTATIONS, withoutGuard } from '../chaos/guards.ts';
import { theNetwork } from './network.ts';
import { currentParty } from './schedule.ts';
import { installSimulatedPool } from './simulated-pool.ts';
import { installVirtualGlobals } from './virtual-globals.ts';

const here = (file: string): string => new URL(file, import.meta.url).href;
const REPLACED: Readonly<Record<string, string>> = {
  undici: here('./simulated-undici.ts'),
  '@google-cloud/pubsub': here('./simulated-pubsub.ts'),
};
const SERVE_HTTP = here('../../world/network/serve-http.ts');
const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/**
 * @param about.without the mark of a guard that is taken away from the code, to see whether a run notices it
 * @param about.previous the folder of the version before, which gets our packages
 */
export function installHooks({
  without,
  previous,
}: {
  without?: string | undefined;
  previous?: string | undefined;
}): void {
  const theirs = previous === undefined ? undefined : pathToFileURL(`${previous}/`).href;
  const edits = Object.values(MUTATIONS).find(({ edits }) => without !== undefined && without in edits)?.edits;
  if (without !== undefined && edits === undefined) throw new Error(`no guard has the mark ${without}`);
  installVirtualGlobals();
  installSimulatedPool();
  const realFetch = globalThis.fetch;
  globalThis.fetch = (input, init) =>
    currentParty() === undefined ? realFetch(input, init) : theNetwork().fetch(input, init);
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const replaced = REPLACED[specifier];
      if (replaced !== undefined) return { url: replaced, shortCircuit: true };
      const isTheirs = theirs !== undefined && context.parentURL?.startsWith(theirs) === true;
      const found = nextResolve(
        specifier,
        isTheirs && /^[@\w]/.test(specifier) ? { ...context, parentURL: import.meta.url } : context,
      );
      return found.url === SERVE_HTTP ? { ...found, url: here('./serve-in-memory.ts') } : found;
    },
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (edits === undefined || !url.startsWith('file:') || !fileURLToPath(url).startsWith(SRC)) return loaded;
      let text = Buffer.from((loaded.source ?? '') as string | Uint8Array).toString();
      for (const [mark, edit] of Object.entries(edits)) text = withoutGuard(text, mark, edit);
      return { ...loaded, source: text };
    },
  });
}
