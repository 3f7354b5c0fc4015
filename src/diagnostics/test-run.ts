import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { LIFECYCLE, RANK_END, type FulfillmentType, type Status } from '../core/domain/lifecycle.ts';
import type { CanonicalOrder } from '../core/domain/order.ts';
import type { LocationDeps, PosDeps } from '../core/locations/check-location.ts';
import type { Location } from '../core/locations/locations.ts';
import type { SettingsKeys } from '../core/locations/settings-key.ts';
import type { Check } from './check.ts';

/** `stopping` ends a call to the POS early. */
export type PlaceDeps = PosDeps & { pool: Pool; stopping?: AbortSignal };

export type CertifyDeps = LocationDeps & { keys: SettingsKeys; publicUrl: string };

export type CertifyOptions = {
  locationId: string;
  contents: TestContents;
  statuses: readonly Status[];
  /** Whether the POS repeats a webhook that was not answered 200. If not, certify answers no webhook 500. */
  repeats: boolean;
  limits: Limits;
  /** Aborts the run. The test order is ended in any case. */
  signal: AbortSignal;
};

/** How long certify waits, in milliseconds. */
type Limits = {
  /** For the POS's answer to an order. The default is the service's own limit. */
  answerMs?: number;
  /** For each status. */
  statusMs: number;
  /** For a status, if a higher status or a webhook that changed nothing has come before it. */
  graceMs: number;
};

/** Reports progress: `wants` says what people must do now, `found` gets each finished check. */
export type Progress = { wants(what: string): void; found(check: Check): void };

/** Names the documentation page for a POS. @param section the section, if the POS is built for us */
export function pageFor(
  { integration, provider }: Pick<Location, 'integration' | 'provider'>,
  section: 'orders' | 'statuses' | 'the-signature',
): string {
  return provider.builtForUs === undefined ? `docs/providers/${integration}.md` : `docs/connect-your-pos.md#${section}`;
}

/** The statuses that a member sees of a successful order. `en_route` exists only for deliveries. */
export function statusesOf(fulfillment: FulfillmentType): Status[] {
  return LIFECYCLE.flatMap((step, i) =>
    step.status !== null && step.rank <= RANK_END && step[fulfillment] !== LIFECYCLE[i - 1]?.[fulfillment]
      ? [step.status]
      : [],
  );
}

/** A made-up member. Germany's Bundesnetzagentur reserves the Berlin numbers 23125 000 to 999 for fiction. */
const MEMBER: CanonicalOrder['member'] = {
  id: 'certify',
  name: 'TEST, do not cook',
  email: 'test@example.com',
  phone: '+493023125000',
};
const NOTES = 'Test order. Do not cook it.';

const FULFILLMENTS: Record<FulfillmentType, CanonicalOrder['fulfillment']> = {
  pickup: { type: 'pickup' },
  delivery: {
    type: 'delivery',
    destination: {
      line1: 'Teststraße 1',
      city: 'Berlin',
      postalCode: '10115',
      country: 'DE',
      instructions: 'Stay here',
    },
  },
};

/** These items contain what a kitchen must read correctly: quantities, modifiers, notes, special letters. */
const ITEMS: CanonicalOrder['items'] = [
  {
    serviceItemId: 'certify-burger',
    name: 'Test burger “Größe L” 🍔',
    quantity: 2,
    unitPrice: 1290,
    notes: 'One of them well done',
    ageRestricted: false,
    modifiers: [
      { serviceModifierId: 'certify-cheddar', name: 'Extra cheddar', quantity: 2, unitPrice: 150 },
      { serviceModifierId: 'certify-no-onions', name: 'No onions', quantity: 1 },
    ],
  },
  {
    serviceItemId: 'certify-beer',
    name: 'Test beer',
    quantity: 1,
    unitPrice: 480,
    ageRestricted: true,
    modifiers: [],
  },
];

/** The contents of a test order: the caller's own, or a sample. */
export type TestContents = Pick<CanonicalOrder, 'items' | 'fulfillment' | 'money'>;

/** @returns two burgers and a beer, in euros */
export function sampleContents(type: FulfillmentType): TestContents {
  const subtotal = 2 * (1290 + 2 * 150) + 480;
  const [tip, fee] = [300, type === 'delivery' ? 350 : 0];
  return {
    items: ITEMS,
    fulfillment: FULFILLMENTS[type],
    money: { subtotal, tax: 0, tip, fee, total: subtotal + tip + fee, currency: 'EUR' },
  };
}

/** Makes a test order. Its id and its member show that it is a test. */
export function makeTestOrder(locationId: string, contents: TestContents, now: Date): CanonicalOrder {
  return {
    ...contents,
    serviceOrderId: `certify-${randomBytes(8).toString('hex')}`,
    locationId,
    member: MEMBER,
    notes: NOTES,
    placedAt: now.toISOString(),
  };
}
