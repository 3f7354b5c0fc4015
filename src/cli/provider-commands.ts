import type { Command } from 'commander';
import { z } from 'zod';
import { readConfigOf } from '../server/config.ts';
import { newSettingsOf } from '../core/locations/locations.ts';
import { groupAt } from '../operators/add-operations.ts';
import { NotDone } from '../operators/operation.ts';
import { examples, print, table } from './print.ts';
import { loadProviders } from './settings-rules.ts';

export function addProviderCommands(program: Command): void {
  const provider = groupAt(program, ['provider']);

  provider
    .command('list')
    .description("list all integrations, and what each does if the POS's answer to an order was lost")
    .addHelpText('after', examples('expediter provider list'))
    .action(async (_options: object, command: Command) => {
      const { PROVIDER_MODULES } = readConfigOf(process.env, 'PROVIDER_MODULES');
      const rows = [...(await loadProviders(PROVIDER_MODULES)).values()].map((each) => ({
        integration: each.integration,
        deduplicates: each.deduplicates,
        canBeAsked: each.findOrder !== undefined,
      }));
      print(
        command,
        rows,
        table(
          rows.map(({ integration, deduplicates, canBeAsked }) => ({
            integration,
            'when in doubt': deduplicates ? 'sends it again' : canBeAsked ? 'asks the POS' : 'an operator decides',
          })),
          'none',
        ),
      );
    });

  provider
    .command('schema')
    .description("print the JSON Schema of a location's settings")
    .argument('<integration>', 'see: expediter provider list')
    .addHelpText('after', examples('expediter provider schema standard'))
    .action(async (integration: string, _options: object, command: Command) => {
      const { PROVIDER_MODULES } = readConfigOf(process.env, 'PROVIDER_MODULES');
      const registry = await loadProviders(PROVIDER_MODULES);
      const found = registry.get(integration);
      if (found === undefined) {
        throw new NotDone(
          404,
          `No integration is called "${integration}". There are ${[...registry.keys()].join(', ')}.`,
        );
      }
      const schema = z.toJSONSchema(newSettingsOf(found), { io: 'input', unrepresentable: 'any' });
      print(command, schema, JSON.stringify(schema, undefined, 2));
    });
}
