import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Pool } from 'pg';
import { readConfigOf } from '../server/config.ts';
import {
  WrongLocation,
  findLocation,
  putLocation,
  settingsOpener,
  type OpenSettings,
} from '../core/locations/locations.ts';
import { listSeenLocations, type SeenLocation } from '../core/locations/list-locations.ts';
import { readGrant, type ShownGrant } from '../core/locations/renew-connections.ts';
import { Id } from '../core/domain/order.ts';
import { audited } from '../core/operators/audit.ts';
import { readActsAt, type ToldAct } from '../core/operators/read-audit.ts';
import { groupAt } from '../operators/add-operations.ts';
import { pausedInWords } from '../operators/location-operations.ts';
import { actsTable } from './acts-table.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples, facts, print, time } from './print.ts';
import { WrongInput, noSuchLocation } from './failures.ts';
import { LOCATION_VARIABLES, settingsRules, withDatabase } from './settings-rules.ts';
import { countValidTokens } from './token-commands.ts';

export function addLocationCommands(program: Command): void {
  const location = groupAt(program, ['location']);

  location
    .command('put')
    .description('configure a location, or configure it anew; orders held for it are tried at once')
    .requiredOption('--location <id>', 'its id on the ordering platform')
    .requiredOption('--integration <name>', 'see: expediter provider list')
    .requiredOption('--settings <file>', 'a file of JSON, or - for standard input; see: expediter provider schema')
    .option('--country <code>', 'such as DE, to read telephone numbers in national form; without it, it stays')
    .addHelpText(
      'after',
      examples(
        `echo '{"ordersUrl": "https://pos.example.com/orders"}' | expediter location put --location club-1 --integration standard --settings -`,
        'expediter location put --location club-1 --integration standard --settings club-1.json',
      ),
    )
    .action(
      async (
        options: { location: string; integration: string; settings: string; country?: string },
        command: Command,
      ) => {
        const env = readConfigOf(process.env, ...LOCATION_VARIABLES);
        const rules = { ...(await settingsRules(env)), allowedHosts: env.ALLOW_PRIVATE_HOSTS };
        const country = options.country === undefined ? undefined : await readCountry(options.country);
        const settings = await readSettings(options.settings);
        const { location: locationId, integration } = options;
        const validTokens = await withDatabase(env.DATABASE_URL, async (pool) => {
          const before = (await findLocation(pool, locationId))?.integration;
          const act = { did: 'put', locationId: Id.safeParse(locationId).data, before };
          const put = async (): Promise<{ integration: string }> => {
            await putLocation(pool, rules, { locationId, integration, settings, country });
            return { integration };
          };
          await audited(pool, commandLineActor(), act, put, (done) => done.integration);
          return countValidTokens(pool, { locationId, integration });
        });
        const next = validTokens > 0 ? '' : `. For its webhooks: expediter token issue --location ${locationId}`;
        print(command, { locationId, integration }, `${locationId} is served by ${integration}${next}`);
      },
    );

  location
    .command('show')
    .description(
      'one location: integration, state, valid tokens, names of its settings, never a value of them; what operators did',
    )
    .argument('<id>')
    .addHelpText('after', examples('expediter location show club-1'))
    .action(async (locationId: string, _options: object, command: Command) => {
      const env = readConfigOf(process.env, 'DATABASE_URL', 'SETTINGS_KEY', 'PUBLIC_URL', 'PROVIDER_MODULES');
      const rules = await settingsRules(env);
      const open = settingsOpener(rules);
      const shown = await withDatabase(env.DATABASE_URL, (pool) => showLocation(pool, open, locationId));
      const { settings, oldToken, integration } = shown;
      const canConnect = rules.registry.get(integration)?.connect !== undefined;
      const said = facts({
        location: locationId,
        integration,
        country: shown.country,
        paused: pausedInWords(shown),
        updated: shown.updatedAt,
        'valid tokens': shown.validTokens,
        settings: settings.fields.join(', '),
        'connection renewed': shown.grant?.grantedAt,
        'connection lasts': grantInWords(shown.grant),
        'cannot be used': settings.problem,
        'refused: old token': oldToken && `${oldToken.webhooks} in 24 h, the last ${time(oldToken.lastReceivedAt)}`,
        'mend it by': oldToken && mendOldToken(locationId, oldToken, canConnect),
      });
      const { acts } = shown;
      print(command, shown, acts.length === 0 ? said : `${said}\n\nWhat operators did\n${actsTable(acts)}`);
    });
}

type ShownLocation = {
  locationId: string;
  integration: string;
  country: string | null;
  paused: boolean;
  pausedAt: Date | null;
  pausedUntil: Date | null;
  updatedAt: Date;
  validTokens: number;
  oldToken: SeenLocation['oldToken'];
  /** The names of the fields only. `problem` says why the settings cannot be used. */
  settings: { fields: string[]; problem?: string };
  /** Null where nothing that ends was granted yet. */
  grant: ShownGrant | null;
  acts: ToldAct[];
};

async function showLocation(pool: Pool, open: OpenSettings, locationId: string): Promise<ShownLocation> {
  const [seen] = await listSeenLocations(pool, [locationId]);
  if (seen === undefined) throw noSuchLocation(locationId);
  const { integration, country, pausedAt, pausedUntil, updatedAt, oldToken } = seen;
  const row = { locationId, integration, country, pausedAt, pausedUntil, updatedAt, oldToken };
  return {
    ...row,
    paused: row.pausedAt !== null,
    validTokens: await countValidTokens(pool, row),
    settings: await settingsFields(pool, open, locationId),
    grant: await readGrant(pool, locationId),
    acts: await readActsAt(pool, locationId),
  };
}

function mendOldToken(
  locationId: string,
  { state }: NonNullable<SeenLocation['oldToken']>,
  canConnect: boolean,
): string {
  if (state === 'of another integration') return 'ending the webhooks at its former POS';
  return canConnect ? `expediter provider connect ${locationId}` : `expediter token issue --location ${locationId}`;
}

function grantInWords(grant: ShownGrant | null): string | undefined {
  if (grant === null) return undefined;
  const { lastsUntil, daysLeft } = grant;
  return lastsUntil === null ? 'until it is revoked' : `until ${time(lastsUntil)}, ${daysLeft} days left`;
}

async function settingsFields(pool: Pool, open: OpenSettings, locationId: string): Promise<ShownLocation['settings']> {
  try {
    const found = await findLocation(pool, locationId);
    const opened = found && (await open(found));
    return { fields: Object.keys(opened?.settings ?? {}) };
  } catch (error) {
    if (error instanceof WrongLocation) return { fields: [], problem: error.message };
    throw error;
  }
}

/** Reads settings. No message quotes them, since they hold credentials. */
async function readSettings(source: string): Promise<unknown> {
  if (/^\s*[{[]/.test(source)) {
    throw new WrongInput(
      '--settings takes a file, or - for standard input: every user of a machine sees its arguments',
    );
  }
  let json: string;
  try {
    json = source === '-' ? await text(process.stdin) : await readFile(source, 'utf8');
  } catch (error) {
    throw new WrongInput(`--settings: the file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
  try {
    return JSON.parse(json);
  } catch {
    throw new WrongInput('--settings: what was read is not JSON; see: expediter provider schema <integration>');
  }
}

async function readCountry(text: string): Promise<string> {
  // Loaded here, since no other command needs its tables.
  const { isSupportedCountry } = await import('libphonenumber-js/min');
  const country = text.toUpperCase();
  if (!isSupportedCountry(country)) throw new WrongInput('--country: is no ISO 3166-1 code such as DE');
  return country;
}
