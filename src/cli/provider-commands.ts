import type { Command } from 'commander';
import { z } from 'zod';
import { readConfigOf } from '../config.ts';
import { guardedFetch } from '../core/egress/guarded-fetch.ts';
import { checkLocation, type CheckedLocation } from '../core/locations/check-location.ts';
import { connectLocation } from '../core/locations/connect-location.ts';
import { databaseClock } from '../core/postgres/database-clock.ts';
import { credentialStore } from '../core/locations/credential-store.ts';
import { WrongLocation, newSettingsOf, settingsOpener } from '../core/locations/locations.ts';
import { actAtLocation } from './act-at-location.ts';
import { examples } from './examples.ts';
import { NotFound } from './failures.ts';
import { loadProviders } from './load-providers.ts';
import { facts, print, table } from './print.ts';
import { LOCATION_VARIABLES, settingsRules } from './settings-rules.ts';
import { withDatabase } from './with-database.ts';

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
      const open = settingsOpener(await settingsRules(env));
      const checked = await withDatabase(env.DATABASE_URL, async (pool) => {
        const clock = databaseClock(pool);
        await clock.follow();
        const credentialsFor = credentialStore(pool, env.SETTINGS_KEY);
        const allowedHosts = env.ALLOW_PRIVATE_HOSTS;
        const posFetch = guardedFetch(allowedHosts);
        const deps = { pool, open, credentialsFor, posFetch, allowedHosts, now: clock.now };
        const check = (): Promise<CheckedLocation> => checkLocation(deps, locationId, CHECK_MS);
        return actAtLocation(pool, 'check', locationId, check, ({ state }) => state);
      });
      print(command, checked, describeCheck(checked));
      if (checked.state === 'failed') process.exitCode = 1;
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
      const { publicUrl, ...rules } = await settingsRules(env);
      if (publicUrl === undefined) {
        throw new WrongLocation('PUBLIC_URL is unset: a POS cannot call us. Example: https://expediter.example.com');
      }
      const connection = await withDatabase(env.DATABASE_URL, async (pool) => {
        const clock = databaseClock(pool);
        await clock.follow();
        const posFetch = guardedFetch(env.ALLOW_PRIVATE_HOSTS);
        const deps = { pool, rules: { ...rules, publicUrl }, posFetch, now: clock.now };
        return actAtLocation(pool, 'connect', locationId, () => connectLocation(deps, locationId));
      });
      const { done, todo } = connection;
      const lines = [...done, ...(todo.length > 0 ? ['Left to do:'] : []), ...todo.map((step) => `- ${step}`)];
      print(command, { locationId, ...connection }, lines.join('\n'));
    });
}

function describeCheck(checked: CheckedLocation): string {
  const { locationId } = checked;
  if (checked.state === 'ok')
    return `the settings of ${locationId} reach its POS${checked.now ? `; ${checked.now}` : ''}`;
  if (checked.state === 'unchecked') return `the settings of ${locationId} were not checked: ${checked.why}`;
  return facts({ location: locationId, problem: checked.problem, 'to do': checked.toDo });
}
