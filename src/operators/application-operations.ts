import { z } from 'zod';
import { table } from '../terminal/print.ts';
import { Id } from '../core/domain/order.ts';
import {
  AdoptedApplication,
  ShownApplication,
  adoptApplications,
  listApplications,
  putApplication,
  removeApplication,
} from '../core/locations/applications.ts';
import { recordAtLocations } from '../core/operators/audit.ts';
import { readSettings } from './location-operations.ts';
import { POS, SETTINGS, operation, type Operation } from './operation.ts';
import { flag, optionalFields } from './requests.ts';

/** Only for integrators of the whole service: an application is used by locations of all groups. */
const access = { role: 'integrator', of: 'all' } as const;
const name = Id.meta({ description: 'The name by which locations refer to it.', examples: ['toast-us'] });
function inWords({ applications }: { applications: readonly z.infer<typeof AdoptedApplication>[] }): string {
  const rows = applications.map((each) => ({ ...each, locations: each.locations.join(', ') }));
  return table(rows, 'There are none. See: expediter application put --help');
}

const list = operation({
  id: 'listApplications',
  access,
  api: {
    route: 'GET /applications',
    summary: 'Vendor applications with their locations',
    description: 'A secret is shown by its fingerprint only.',
    output: z.object({ applications: z.array(ShownApplication) }),
    answer: 'The applications.',
  },
  reads: SETTINGS,
  run: async ({ pool, settings }) => ({ applications: await listApplications(pool, settings) }),
  print: inWords,
  command: {
    name: 'application list',
    about: 'list vendor applications: their settings without secrets, and how many locations use each',
    examples: ['expediter application list'],
    rows: 'applications',
  },
});

const put = operation({
  id: 'putApplication',
  access: { ...access, does: 'put application' },
  api: {
    route: 'PUT /applications/:name',
    summary: "Create or replace a vendor application: the platform's own id and secret at a vendor",
    description:
      'Locations refer to it by `"application": "<name>"` in their settings. They use a change at their next request, and ' +
      'their held orders are tried immediately. Its secrets are stored encrypted and never shown.',
    output: z
      .object({ name: z.string(), created: z.boolean(), changed: z.array(z.string()), locations: z.int() })
      .meta({ id: 'ChangedApplication' }),
    answer: 'It is stored. The names of the changed settings, and the number of its locations.',
    refuses: [409],
    creates: true,
  },
  params: z.strictObject({ name }),
  body: z.strictObject({
    integration: Id.meta({ description: 'The name of an integration.', examples: ['toast'] }),
    settings: z.record(z.string(), z.unknown()).meta({
      description: 'The fields that a location with `application` leaves out: see `GET /providers`.',
      examples: [{ baseUrl: 'https://toast.example.com', clientId: 'an id', clientSecret: 'a secret' }],
    }),
  }),
  reads: POS,
  wakes: true,
  about: async (_, input) => ({ subject: input.name }),
  async run({ pool, by, settings, pos, note }, input) {
    const done = await putApplication(pool, { ...settings, allowedHosts: pos.allowedHosts }, input);
    if ('refused' in done) return done;
    const { locations, changed } = done;
    const after = `changed ${changed.join(', ') || 'nothing'}`;
    note(after);
    // guard: applications-in-audit
    const at = changed.length === 0 ? [] : locations.map((locationId) => ({ locationId, after }));
    await recordAtLocations(pool, by, { action: 'put application', subject: input.name }, at);
    return { name: input.name, ...done, locations: locations.length };
  },
  print: (done) =>
    `${done.name} is stored; changed: ${done.changed.join(', ') || 'nothing'}; locations: ${done.locations}`,
  command: {
    name: 'application put',
    about: "create or replace a vendor application: the platform's own id and secret at a vendor of POS systems",
    options: [
      { flags: '--integration <name>', about: 'see: expediter provider list', required: true },
      { flags: '--settings <file>', about: 'a JSON file, or - for standard input', required: true },
    ],
    examples: ['expediter application put toast-us --integration toast --settings - < toast-us.json'],
    read: async ({ settings: file, ...typed }) => ({ ...typed, settings: await readSettings(String(file)) }),
  },
});

const remove = operation({
  id: 'removeApplication',
  access: { ...access, does: 'remove application' },
  missing: 'No application has this name.',
  api: {
    route: 'DELETE /applications/:name',
    summary: 'Remove a vendor application that no location uses',
    description: 'Its secret stays valid at the vendor.',
    output: z.object({ name: z.string(), removed: z.literal(true) }),
    answer: 'It is removed.',
    refuses: [409],
  },
  params: z.strictObject({ name }),
  about: async (_, input) => ({ subject: input.name }),
  run: async ({ pool }, input) => removeApplication(pool, input.name),
  print: (done) => `${done.name} is removed`,
  command: {
    name: 'application remove',
    about: 'remove a vendor application that no location uses',
    cannot: 'cannot be removed',
    examples: ['expediter application remove toast-us'],
  },
});

const adopt = operation({
  id: 'adoptApplications',
  access: { ...access, does: 'adopt applications' },
  api: {
    route: 'POST /applications/adopt',
    summary: "Move the platform's ids and secrets from the settings of locations into vendor applications",
    description:
      'Locations with equal fields get one application. Safe to repeat. Do this when every process runs this version, ' +
      'because an earlier version cannot read a location that refers to an application.',
    output: z.object({ applications: z.array(AdoptedApplication) }),
    answer: 'The applications, with the locations that now refer to them.',
  },
  body: optionalFields({ dryRun: flag('Change nothing.') }),
  reads: POS,
  async run({ pool, by, settings, pos, note }, { dryRun }) {
    const rules = { ...settings, allowedHosts: pos.allowedHosts };
    const applications = await adoptApplications(pool, rules, dryRun);
    // Each location's audit shows its own change.
    const adopted = (dryRun ? [] : applications).flatMap((each) => {
      const after = JSON.stringify({ 'settings.application': each.name });
      return each.locations.map((locationId) => ({ locationId, after }));
    });
    await recordAtLocations(pool, by, { action: 'change' }, adopted);
    note(applications.map((each) => `${each.name}: ${each.locations.length}`).join(', ') || 'nothing');
    return { applications };
  },
  print: inWords,
  command: {
    name: 'application adopt',
    about:
      "move the platform's ids and secrets from the settings of locations into vendor applications. Locations with equal " +
      'fields get one. Safe to repeat. Run it when every process runs this version',
    options: [{ flags: '--dry-run', about: 'change nothing, and print what would change' }],
    examples: ['expediter application adopt --dry-run', 'expediter application adopt'],
  },
});

export const APPLICATION_OPERATIONS: readonly Operation[] = [list, put, remove, adopt];
