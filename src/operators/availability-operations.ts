import { z } from 'zod';
import { facts, tableOf, time } from '../terminal/print.ts';
import { KITCHEN_STATES } from '../core/domain/availability.ts';
import { Next } from '../core/domain/next.ts';
import { Id } from '../core/domain/order.ts';
import { ShownAvailability, endBusy, makeBusy, showAvailability } from '../core/kitchens/settle-kitchens.ts';
import { availabilityInWords } from './location-text.ts';
import { operation, type Operation } from './operation.ts';
import { group, lasting, LocationParams, oneOf, optionsOf, paging, pagingOptions } from './requests.ts';

const KitchensQuery = z.strictObject({
  group,
  location: Id.optional().meta({ description: 'Only this location.' }),
  integration: Id.optional().meta({ description: 'Only locations with this integration.' }),
  state: oneOf(KITCHEN_STATES, 'Only kitchens in this state.').optional(),
  ...paging(Id),
});

const list = operation({
  id: 'listAvailability',
  access: { role: 'any', of: 'list' },
  api: {
    route: 'GET /availability',
    summary: 'Which kitchens take orders now, by location',
    description: 'It is what the platform is told, at most a second old.',
    output: z.object({ kitchens: z.array(ShownAvailability), next: Next }),
    answer: 'A page of kitchens.',
  },
  query: KitchensQuery,
  async run({ pool, within }, { location, integration, state, cursor, limit }) {
    const filter = { locations: within(location), integration, state };
    const kitchens = await showAvailability(pool, filter, { after: cursor, limit });
    return { kitchens, next: kitchens.length === limit ? (kitchens.at(-1)?.locationId ?? null) : null };
  },
  print: ({ kitchens }) =>
    tableOf('No kitchens match.', kitchens, ({ locationId, integration, ...kitchen }) => ({
      location: locationId,
      integration,
      kitchen: availabilityInWords(kitchen),
      since: time(kitchen.since),
      reason: kitchen.reason,
    })),
  command: {
    name: 'location availability',
    about: 'list which kitchens take orders now: open, busy, closed or unreachable',
    options: [
      ...optionsOf(KitchensQuery, '--location <id>', '--group <name>', '--integration <name>', '--state <state>'),
      ...pagingOptions('id'),
    ],
    examples: ['expediter location availability --state unreachable'],
    rows: 'kitchens',
  },
});

const show = operation({
  id: 'showAvailability',
  access: { role: 'any', of: 'location' },
  api: {
    route: 'GET /locations/:locationId/availability',
    summary: 'Whether the kitchen of a location takes orders now',
    description: 'It is what the platform is told, at most a second old.',
    output: ShownAvailability,
    answer: 'Its availability.',
  },
  params: LocationParams,
  run: async ({ pool }, { locationId }) => (await showAvailability(pool, { locations: [locationId] }, { limit: 1 }))[0],
});

const busyTime = lasting('it ends');
const BusyBody = z
  .strictObject({
    extraMinutes: z.int().min(1).max(720).meta({ description: 'The minutes that each order takes longer.' }),
    ...busyTime.fields,
  })
  .refine(...busyTime.hasOneEnd)
  .meta({ examples: [{ extraMinutes: 20, minutes: 60, reason: 'One cook is ill.' }] });

const busy = operation({
  id: 'makeBusy',
  access: { role: 'operator', of: 'location', does: 'make busy' },
  api: {
    route: 'PUT /locations/:locationId/busy',
    summary: 'Make a kitchen busy: each order takes longer',
    description:
      'Orders are still sent, with `extraMinutes` for the POS. The platform is told at once. Without `minutes` and ' +
      "`until` it has no end. It replaces an earlier request. While it lasts, the POS's own report does not count.",
    output: ShownAvailability,
    answer: 'The availability of the kitchen, which may be closed or unreachable.',
  },
  params: LocationParams,
  body: BusyBody,
  async run(caller, { locationId, ...given }) {
    busyTime.refusePast(caller, given);
    caller.note(`${given.extraMinutes} minutes${busyTime.inWords(given)}`);
    return makeBusy(caller, locationId, { ...given, by: caller.by.name });
  },
  print: kitchenInWords,
  command: {
    name: 'location busy',
    about: 'make a kitchen busy: its orders are sent, and take longer. The platform is told',
    options: [...optionsOf(BusyBody, '--extra-minutes <count>'), ...busyTime.options],
    examples: ['expediter location busy club-1 --extra-minutes 20 --for 1h --reason "One cook is ill"'],
    read: busyTime.read,
  },
});

const end = operation({
  id: 'endBusy',
  access: { role: 'operator', of: 'location', does: 'end busy' },
  api: {
    route: 'DELETE /locations/:locationId/busy',
    summary: 'End the busy state of a kitchen',
    description: 'It also ends what the POS reported. A pause stays.',
    output: ShownAvailability,
    answer: 'The availability of the kitchen.',
  },
  params: LocationParams,
  run: async (caller, { locationId }) => endBusy(caller, locationId),
  print: kitchenInWords,
  command: {
    name: 'location end-busy',
    about: 'end the busy state of a kitchen, also if its POS reported it',
    examples: ['expediter location end-busy club-1'],
  },
});

export const AVAILABILITY_OPERATIONS: readonly Operation[] = [list, show, busy, end];

function kitchenInWords(shown: ShownAvailability): string {
  return facts({
    location: shown.locationId,
    kitchen: availabilityInWords(shown),
    since: time(shown.since),
    reason: shown.reason,
  });
}
