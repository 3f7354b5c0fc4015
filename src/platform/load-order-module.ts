import { registerHooks } from 'node:module';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { NeedsOperator } from '../core/domain/errors.ts';
import type { FetchModule, OrderInput, OrderModule, QueryModule } from '../core/domain/order-module.ts';
import { describeCause } from '../core/domain/explain-cause.ts';

/** The query for a platform whose fields have the canonical names. */
const DEFAULT_QUERY = `query Order($id: ID!) {
  order(id: $id) {
    serviceOrderId
    locationId
    member { id name email phone }
    fulfillment {
      type
      destination { line1 line2 city postalCode region country latitude longitude instructions }
      requestedAt
    }
    items {
      serviceItemId name quantity unitPrice notes ageRestricted
      modifiers { serviceModifierId name quantity unitPrice }
    }
    money { subtotal tax tip fee total currency }
    notes
    placedAt
  }
}`;

/** The file that an import of `expediter-platform` loads: `.ts` in `src`, `.js` in `dist`. */
const PLATFORM_KIT = new URL(`../platform-kit${extname(import.meta.url)}`, import.meta.url).href;

/**
 * Loads the module that `ORDER_MODULE` names. Without this variable, makes a module from the default query, whose answer
 * must have the canonical shape.
 * @throws Error that names the variable and its problem
 */
export async function loadOrderModule(config: { ORDER_MODULE?: string | undefined }): Promise<OrderModule> {
  const { ORDER_MODULE: name } = config;
  return name === undefined ? { query: DEFAULT_QUERY, toCanonicalOrder: orderOf } : importModule(name);
}

/** @param name a package, or a path from the working directory that begins with `.` or `/` */
async function importModule(name: string): Promise<OrderModule> {
  const specifier = /^[./]/.test(name) ? pathToFileURL(resolve(name)).href : name;
  // The module gets our own `expediter-platform`. A copy in its own package might be of another version.
  const hooks = registerHooks({
    resolve: (wanted, context, next) =>
      wanted === 'expediter-platform' ? { url: PLATFORM_KIT, shortCircuit: true } : next(wanted, context),
  });
  let module: Exported;
  try {
    module = (await import(specifier)) as Exported;
  } catch (error) {
    const hint = specifier === name ? '. A path begins with . or /, such as ./map-order.ts' : '';
    throw new Error(`ORDER_MODULE: ${name} cannot be loaded: ${(error as Error).message}${hint}`, { cause: error });
  } finally {
    hooks.deregister();
  }
  const problem = await problemWith(module);
  if (problem !== undefined) throw new Error(`ORDER_MODULE: ${name} ${problem}`);
  return module as OrderModule;
}

/** What a file exports, which may be anything. */
type Exported = { [Name in keyof QueryModule]?: QueryModule[Name] | FetchModule[Name] };

async function problemWith(module: Exported): Promise<string | undefined> {
  const { query, fetchOrder, variables, headers, errorCode, cancelled, toCanonicalOrder } = module;
  if (query !== undefined && fetchOrder !== undefined) return 'exports "query" and "fetchOrder": keep one of them';
  if (fetchOrder === undefined && typeof query !== 'string') {
    return 'must export a text "query", the GraphQL document, or a function "fetchOrder"';
  }
  if (fetchOrder !== undefined && typeof fetchOrder !== 'function')
    return 'exports a "fetchOrder" that is not a function';
  if (typeof toCanonicalOrder !== 'function') return 'must export a function "toCanonicalOrder"';
  for (const [name, optional] of Object.entries({ variables, headers, errorCode, cancelled, toCanonicalOrder })) {
    if (optional === undefined) continue;
    if (typeof optional !== 'function') return `exports a "${name}" that is not a function`;
    if (name !== 'headers' && optional.constructor.name === 'AsyncFunction')
      return `exports a "${name}" that is async: make it synchronous`;
  }
  if (query === undefined) {
    const unused = Object.entries({ variables, errorCode }).find(([, each]) => each !== undefined);
    return unused && `exports "${unused[0]}", which needs "query": with "fetchOrder" remove it`;
  }
  // GraphQL is imported only to check a module's query, because the import takes time at every start.
  const { problemWithQuery } = await import('./problem-with-query.ts');
  const problem = problemWithQuery(query, variables === undefined ? ['id'] : undefined);
  return problem && `has a "query" that ${problem}`;
}

function orderOf(data: unknown): OrderInput | null {
  const { order } = data as { order?: OrderInput | null };
  if (order !== undefined) return order;
  const cause = { code: 'query_without_order' } as const;
  throw new NeedsOperator(describeCause(cause), { cause });
}
