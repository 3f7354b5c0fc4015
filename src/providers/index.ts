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

/** The built-in providers. A new POS needs one folder and one line here. */
const providers: readonly Provider[] = [standard, hubrise, square, lightspeedK, deliverect, toast];

export const registry: Registry = new Map(providers.map((provider) => [provider.integration, provider]));

/**
 * Loads the built-in providers and the modules of `PROVIDER_MODULES`. Each module's default export is a `Provider`.
 * @param moduleNames packages, or paths from the working directory that begin with `.` or `/`
 * @throws Error that names the module and its problem
 */
export async function loadProviders(moduleNames: readonly string[]): Promise<Registry> {
  const loaded = new Map(registry);
  for (const name of moduleNames) {
    const provider = await loadProvider(name);
    if (loaded.has(provider.integration)) {
      throw new Error(`PROVIDER_MODULES: ${name}: a provider "${provider.integration}" already exists`);
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

/** Checks a provider's shape. A schema needs only `safeParse`: a module may have its own copy of zod. */
function problemWith(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return 'is not a provider object';
  const {
    integration,
    settings,
    application,
    deduplicates,
    deduplicatesForS,
    attemptWithinS,
    createOrder,
    translateWebhook,
    webhookAuth,
  } = value as Partial<Provider>;
  if (typeof integration !== 'string' || !/^[a-z0-9][a-z0-9-]{0,62}$/.test(integration)) {
    return 'needs an "integration" of lower-case letters, digits and hyphens, such as "acme-pos"';
  }
  if (typeof settings?.safeParse !== 'function') return 'needs "settings", a zod schema';
  if (application !== undefined && typeof application.shape !== 'object') {
    return 'has an "application" that is not a zod object, such as Settings.pick({ clientId: true, clientSecret: true })';
  }
  if (typeof deduplicates !== 'boolean') return 'needs "deduplicates", true or false';
  if (deduplicatesForS !== undefined && !(deduplicatesForS > 0)) {
    return 'has a "deduplicatesForS" that is not a positive number of seconds';
  }
  if (attemptWithinS !== undefined && !isAttemptLimit(attemptWithinS)) {
    return `has an "attemptWithinS" that is not a number of seconds up to ${LONGEST_ATTEMPT_S}`;
  }
  const { authorisation } = value as { authorisation?: object };
  if (authorisation !== undefined && !('hosts' in authorisation))
    return 'has an authorisation without "hosts": see CHANGELOG.md';
  if ('readBusy' in value) return 'has "readBusy", which is now called "readKitchen": see CHANGELOG.md';
  if (typeof createOrder !== 'function') return 'needs a function "createOrder"';
  if (typeof translateWebhook !== 'function') return 'needs a function "translateWebhook"';
  if (webhookAuth !== undefined && !WebhookAuth.safeParse(webhookAuth).success) {
    return 'has a wrong "webhookAuth": it needs kind, header and settings, and takes no unknown field';
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
    if (optional !== undefined && typeof optional !== 'function') return `has a "${name}" that is not a function`;
  }
  return undefined;
}
