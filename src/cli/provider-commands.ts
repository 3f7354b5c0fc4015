import type { Command } from 'commander';
import { z } from 'zod';
import { readConfigOf } from '../server/config.ts';
import { checkLocation, type CheckedLocation } from '../core/locations/check-location.ts';
import { locationDeps } from '../core/locations/location-deps.ts';
import { connectLocation } from '../core/locations/connect-location.ts';
import { WrongLocation, newSettingsOf } from '../core/locations/locations.ts';
import { describeCheck, printChecks } from '../diagnostics/print-checks.ts';
import { actAtLocation } from './acts-table.ts';
import { examples, print, table } from './print.ts';
import { NotFound } from './failures.ts';
import { loadProviders, LOCATION_VARIABLES, settingsRules, withDatabase } from './settings-rules.ts';

const CHECK_MS = 10_000;

export function addProviderCommands(program: Command): void {
  const provider = program
    .command('provider')
    .description('the integrations there are, PROVIDER_MODULES included, and their POS systems')
    .addHelpText(
      'after',
      examples(
        'expediter provider list',
        'expediter provider schema standard',
        'expediter provider check club-1',
        'expediter provider connect club-1',
      ),
    );

  provider
    .command('list')
    .description('all integrations, and what becomes of an order whose answer was lost')
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
    .description("the JSON Schema of a location's settings")
    .argument('<integration>', 'see: expediter provider list')
    .addHelpText('after', examples('expediter provider schema standard'))
    .action(async (integration: string, _options: object, command: Command) => {
      const { PROVIDER_MODULES } = readConfigOf(process.env, 'PROVIDER_MODULES');
      const registry = await loadProviders(PROVIDER_MODULES);
      const found = registry.get(integration);
      if (found === undefined) {
        throw new NotFound(`no integration is called "${integration}"; there are ${[...registry.keys()].join(', ')}`);
      }
      const schema = z.toJSONSchema(newSettingsOf(found), { io: 'input', unrepresentable: 'any' });
      print(command, schema, JSON.stringify(schema, undefined, 2));
    });

  provider
    .command('check')
    .description("ask a location's POS whether its settings reach it; nothing is changed there. Exits 1 if they do not")
    .argument('<location>', 'its id on the ordering platform')
    .addHelpText('after', examples('expediter provider check club-1', 'expediter provider check club-1 --json'))
    .action(async (locationId: string, _options: object, command: Command) => {
      const env = readConfigOf(process.env, ...LOCATION_VARIABLES);
      const rules = await settingsRules(env);
      const checked = await withDatabase(env.DATABASE_URL, async (pool) => {
        const deps = await locationDeps(pool, rules, env.ALLOW_PRIVATE_HOSTS);
        const check = (): Promise<CheckedLocation> => checkLocation(deps, locationId, CHECK_MS);
        return actAtLocation(pool, 'check', locationId, check, ({ state }) => state);
      });
      // Loaded here, since no other command needs it.
      const { judgeReach } = await import('../diagnostics/examine-locations.ts');
      const check = judgeReach(checked);
      printChecks(command, [check], checked, describeCheck(check));
    });

  provider
    .command('connect')
    .description(
      "make a location's POS call our webhook, with a new token: registers it where the POS's API allows it, " +
        'and says what is left to do by hand. Earlier tokens stay valid until they are revoked',
    )
    .argument('<location>', 'its id on the ordering platform')
    .addHelpText('after', examples('expediter provider connect club-1'))
    .action(async (locationId: string, _options: object, command: Command) => {
      const env = readConfigOf(process.env, ...LOCATION_VARIABLES);
      const rules = await settingsRules(env);
      const { publicUrl } = rules;
      if (publicUrl === undefined) {
        throw new WrongLocation('PUBLIC_URL is unset: a POS cannot call us. Example: https://expediter.example.com');
      }
      const connection = await withDatabase(env.DATABASE_URL, async (pool) => {
        const { posFetch, now } = await locationDeps(pool, rules, env.ALLOW_PRIVATE_HOSTS);
        const deps = { pool, rules: { ...rules, publicUrl }, posFetch, now };
        return actAtLocation(pool, 'connect', locationId, () => connectLocation(deps, locationId));
      });
      const { done, todo } = connection;
      const lines = [...done, ...(todo.length > 0 ? ['Left to do:'] : []), ...todo.map((step) => `- ${step}`)];
      print(command, { locationId, ...connection }, lines.join('\n'));
    });
}
