import { z } from 'zod';
import { tableOf } from '../terminal/print.ts';
import { CanonicalOrder, Id } from '../core/domain/order.ts';
import type { Provider } from '../core/domain/provider.ts';
import { settingsSchema, ShownProvider } from '../core/locations/describe-settings.ts';
import { PlacedTest } from '../core/test-orders/test-order.ts';
import { placeTestOrder } from '../diagnostics/place-test-order.ts';
import { POS, operation, type Operation } from './operation.ts';
import { LocationParams, optionalFields } from './requests.ts';

export const listProviders = operation({
  id: 'listProviders',
  access: { role: 'any', of: 'none', whileAway: true },
  api: {
    route: 'GET /providers',
    summary: 'The integrations that a location can have',
    description: 'Each with the schema of its settings.',
    output: z.object({ providers: z.array(ShownProvider) }),
    answer: 'The integrations.',
  },
  reads: ['PROVIDER_MODULES'],
  run: async ({ settings: { registry } }) => ({ providers: [...registry.values()].map(describeProvider) }),
  print: ({ providers }) =>
    tableOf('none', providers, ({ integration, deduplicates, canBeAsked }) => ({
      integration,
      'when in doubt': deduplicates ? 'sends it again' : canBeAsked ? 'asks the POS' : 'an operator decides',
    })),
  command: {
    name: 'provider list',
    about: "list all integrations, and what each does if the POS's answer to an order was lost",
    examples: ['expediter provider list'],
    rows: 'providers',
  },
});

const show = operation({
  id: 'showProvider',
  access: { role: 'any', of: 'none', whileAway: true },
  missing: 'No integration has this name. See: expediter provider list',
  api: {
    route: 'GET /providers/:integration',
    summary: 'One integration',
    description: 'With the schema of its settings.',
    output: ShownProvider,
    answer: 'The integration.',
  },
  params: z.strictObject({ integration: Id.meta({ description: 'Its name.', examples: ['standard'] }) }),
  reads: ['PROVIDER_MODULES'],
  async run({ settings: { registry } }, { integration }) {
    const found = registry.get(integration);
    return found && describeProvider(found);
  },
  print: ({ settings }) => JSON.stringify(settings, undefined, 2),
  command: {
    name: 'provider schema',
    about: "print the JSON Schema of a location's settings. A writeOnly field is a secret",
    argument: { flags: '<integration>', about: 'see: expediter provider list', field: 'integration' },
    examples: ['expediter provider schema standard'],
    rows: 'settings',
  },
});

const testOrder = operation({
  id: 'testOrder',
  access: { role: 'integrator', of: 'location', does: 'test order' },
  api: {
    route: 'POST /locations/:locationId/test-order',
    summary: "Place a test order at a location's POS",
    description:
      'The kitchen gets a real ticket for pickup, named “TEST, do not cook”. Remove it at the POS. In our books the ' +
      'order has ended when you get the answer, so its later statuses change nothing. It takes up to a minute.',
    output: PlacedTest,
    answer: 'The ticket, or why there is none.',
  },
  params: LocationParams,
  body: optionalFields({
    itemId: Id.default('test-item').meta({
      description: 'The id of a menu item on the platform. Many POS systems refuse an item that they do not know.',
    }),
    price: CanonicalOrder.shape.money.shape.total.default(100).meta({ description: 'In minor units.' }),
    currency: CanonicalOrder.shape.money.shape.currency.default('EUR'),
  }),
  reads: POS,
  async run({ pos, note }, { locationId, itemId, price, currency }) {
    const placed = await placeTestOrder(pos, locationId, { id: itemId, price, currency });
    note(placed.state);
    return placed;
  },
  fails: ({ state }) => state === 'failed',
  print: (placed) =>
    placed.state === 'failed'
      ? `The POS did not take the test order: ${placed.problem}\n${placed.toDo}`
      : `The POS took the test order. Remove its ticket there: ${[placed.callOutCode, placed.providerOrderId].filter(Boolean).join(', ')}`,
  command: {
    name: 'provider test',
    about: "place a test order at a location's POS. The kitchen gets a ticket, which you then remove at the POS",
    options: [
      { flags: '--item-id <id>', about: 'a menu item that the POS knows; by default test-item' },
      { flags: '--price <amount>', about: 'its price in minor units; by default 100', read: Number },
      { flags: '--currency <code>', about: 'such as EUR, which is the default' },
    ],
    examples: ['expediter provider test club-1', 'expediter provider test club-1 --item-id margherita --price 1200'],
  },
});

export const PROVIDER_OPERATIONS: readonly Operation[] = [listProviders, show, testOrder];

function describeProvider(provider: Provider): z.output<typeof ShownProvider> {
  return {
    integration: provider.integration,
    deduplicates: provider.deduplicates,
    canBeAsked: provider.findOrder !== undefined,
    check: provider.check !== undefined,
    connect: provider.connect !== undefined,
    settings: settingsSchema(provider) as Record<string, unknown>,
  };
}
