import { readConfig } from '../config.ts';
import { loadOrderModule } from '../platform/load-order-module.ts';
import { loadProviders } from '../providers/index.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, failed } = reporterOf('environment');

/** @throws WrongEnvironment that names every wrong variable */
export async function examineEnvironment(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const config = readConfig(env);
  const { ORDER_MODULE, ORDER_QUERY_FILE, PROVIDER_MODULES } = config;
  const mapping = ORDER_MODULE === undefined ? 'ORDER_QUERY_FILE' : 'ORDER_MODULE';
  return [
    ok('variables', 'all are right'),
    await loadOrderModule(config).then(
      () => ok(mapping, ORDER_MODULE ?? (ORDER_QUERY_FILE === undefined ? 'unset: the default query' : 'one query')),
      (error: Error) =>
        failed(mapping, error.message, `name a ${ORDER_MODULE ? 'module' : 'file'} that holds the query of an order`),
    ),
    await loadProviders(PROVIDER_MODULES).then(
      (registry) => ok('PROVIDER_MODULES', [...registry.keys()].join(', ')),
      (error: Error) => failed('PROVIDER_MODULES', error.message, 'install the module, or take it out'),
    ),
  ];
}
