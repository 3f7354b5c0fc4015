import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LONGEST_ATTEMPT_S, isAttemptLimit } from '../core/domain/timing.ts';
import type { Provider, Registry } from '../core/domain/provider.ts';
import { WebhookAuth } from '../core/domain/webhook-auth.ts';
import { deliverect } from './deliverect/index.ts';
import { hubrise } from './hubrise/index.ts';
import { lightspeedK } from './lightspeed-k/index.ts';
import { square } from './square/index.ts';
import { standard } from './standard/index.ts';
import { toast } from './toast/index.ts';

/** All built-in providers. A new POS is one folder and one line here. */
const providers: readonly Provider[] = [standard, hubrise, square, lightspeedK, deliverect, toast];

export const registry: Registry = new Map(providers.map((provider) => [provider.integration, provider]));

/**
 * Loads the built-in providers and those of `PROVIDER_MODULES`, each a module whose default export is a `Provider`.
 * @param moduleNames packages, or paths from the working directory that begin with `.` or `/`
 * @throws Error that names the module and what is wrong with it
 */
export async function loadProviders(moduleNames: readonly string[]): Promise<Registry> {
  const loaded = new Map(registry);
  for (const name of moduleNames) {
    const provider = await loadProvider(name);
    if (loaded.has(provider.integration)) {
      throw new Error(`PROVIDER_MODULES: ${name}: there is a provider "${provider.integration}" already`);
    }
    loaded.set(provider.integration, provider);
  }
  return loaded;
}

async function loadProvider(name: string): Promise<Provider> {
  const specifier = /^[./]/.test(name) ? pathToFileURL(resolve(name)).href : name;
  let module: { default?: unknown };
  try {
    module = (await import(specifier)) as { default?: unknown };
  } catch (error) {
    throw new Error(`PROVIDER_MODULES: ${name} cannot be loaded: ${(error as Error).message}`, { cause: error });
  }
  const problem = problemWith(module.default);
  if (problem !== undefined) throw new Error(`PROVIDER_MODULES: ${name}: its default export ${problem}`);
  return module.default as Provider;
}

/** Checks the shape of a provider. A schema is known by its methods, since a module may bring its own copy of zod. */
function problemWith(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return 'is not a provider object';
  const {
    integration,
    settings,
    deduplicates,
    deduplicatesForS,
    attemptWithinS,
    createOrder,
    translateWebhook,
    webhookAuth,
  } = value as Partial<Provider>;
  if (typeof integration !== 'string' || !/^[a-z0-9][a-z0-9-]{0,62}$/.test(integration)) {
    return 'has no "integration" of lower-case letters, digits and hyphens, such as "acme-pos"';
  }
  if (typeof settings?.safeParse !== 'function') return 'has no "settings", a zod schema';
  if (typeof deduplicates !== 'boolean') return 'has no "deduplicates", true or false';
  if (deduplicatesForS !== undefined && !(deduplicatesForS > 0)) {
    return 'has a "deduplicatesForS" that is no number of seconds';
  }
  if (attemptWithinS !== undefined && !isAttemptLimit(attemptWithinS)) {
    return `has an "attemptWithinS" that is no number of seconds up to ${LONGEST_ATTEMPT_S}`;
  }
  if (typeof createOrder !== 'function') return 'has no function "createOrder"';
  if (typeof translateWebhook !== 'function') return 'has no function "translateWebhook"';
  if (webhookAuth !== undefined && !WebhookAuth.safeParse(webhookAuth).success) {
    return 'has a "webhookAuth" without kind, header or settings, or with something else than them';
  }
  for (const name of [
    'checkOrder',
    'findOrder',
    'readStatus',
    'check',
    'connect',
    'renewConnection',
    'account',
    'needsPublicUrl',
  ] as const) {
    const optional = (value as Partial<Provider>)[name];
    if (optional !== undefined && typeof optional !== 'function') return `has a "${name}" that is no function`;
  }
  return undefined;
}
