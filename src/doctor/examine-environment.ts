import { readConfig } from '../config.ts';
import { readOrderQuery } from '../core/placements/refetch-order.ts';
import { loadProviders } from '../providers/index.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, failed } = reporterOf('environment');

/** @throws WrongEnvironment that names every wrong variable */
export async function examineEnvironment(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { ORDER_QUERY_FILE, PROVIDER_MODULES } = readConfig(env);
  return [
    ok('variables', 'all are right'),
    await readOrderQuery(ORDER_QUERY_FILE).then(
      () => ok('ORDER_QUERY_FILE', ORDER_QUERY_FILE === undefined ? 'unset: the default query' : 'a GraphQL document'),
      (error: Error) => failed('ORDER_QUERY_FILE', error.message, 'name a file that holds the query of an order'),
    ),
    await loadProviders(PROVIDER_MODULES).then(
      (registry) => ok('PROVIDER_MODULES', [...registry.keys()].join(', ')),
      (error: Error) => failed('PROVIDER_MODULES', error.message, 'install the module, or take it out'),
    ),
  ];
}
