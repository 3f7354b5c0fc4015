import { expect } from 'vitest';
import { GiveUp } from '../../../src/core/domain/errors.ts';
import type { FulfillmentType } from '../../../src/core/domain/lifecycle.ts';
import { type CanonicalOrder, KitchenOrder, type OrderRef } from '../../../src/core/domain/order.ts';
import type { Provider, Webhook } from '../../../src/core/domain/provider.ts';
import type { SignedWebhook, Simulator, Ticket } from '../../../world/pos/simulator.ts';
import { sampleOrder, type SampleOptions } from '../../../world/platform/sample-order.ts';
import { rejectionOf } from './error-of.ts';
import { openStage, refusalsOf, withRefusals, type Stage } from './open-stage.ts';
import type { ProviderFixtures } from './provider-fixtures.ts';

/** Declares one claim. Every POS that the claim starts is stopped at its end. */
export type Claim = (name: string, body: () => void | Promise<void>) => void;

export const WEBHOOK_URL = 'https://expediter.example.com/webhook/pos/club-1?token=t-1';
export const FULFILLMENTS: readonly FulfillmentType[] = ['pickup', 'delivery'];

export const orderOf = (options: SampleOptions = {}): KitchenOrder =>
  KitchenOrder.parse({ callOutCode: 'K472', ...sampleOrder(options) });

/** Shared by all claims about one provider. */
export type Theatre<Settings> = ReturnType<typeof openTheatre<Settings>>;

export function openTheatre<Settings>(provider: Provider<Settings>, fixtures: ProviderFixtures) {
  const { start, secretSettings } = fixtures;
  const { webhookAuth } = provider;
  if (webhookAuth === undefined) throw new Error(`${provider.integration} lacks webhookAuth`);
  const referenceOf = fixtures.reference ?? ((serviceOrderId: string) => serviceOrderId);
  const statuses = Object.entries(fixtures.statuses).flatMap(([native, meaning]) =>
    FULFILLMENTS.flatMap((fulfillment) => {
      const status = meaning === null || typeof meaning === 'string' ? meaning : meaning[fulfillment];
      return status === undefined ? [] : [{ native, fulfillment, status }];
    }),
  );
  const said = statuses.find(({ status }) => status !== null);
  if (said === undefined) throw new Error('the fixtures need a status that is not null');
  const ends: (() => Promise<void>)[] = [];

  /** Starts a POS, and a process that has its settings. */
  async function stage(currency?: string): Promise<Stage<Settings>> {
    const opened = await openStage(provider, start, currency);
    ends.push(() => opened.pos.stop());
    return opened;
  }

  /** Returns what createOrder throws. Fails if that shows secrets or the member's texts. */
  async function failureOf({ pos, contextOf }: Stage<Settings>, context = contextOf()): Promise<Error> {
    const order = orderOf({ type: 'delivery' });
    const error = await rejectionOf(provider.createOrder(order, context));
    expectNoSecrets(pos, error, order);
    return withRefusals(error, pos);
  }

  function expectNoSecrets(pos: Simulator, error: Error, order = orderOf({ type: 'delivery' })): void {
    const text = `${error.message} ${error instanceof GiveUp ? error.reason : ''} ${JSON.stringify(error.cause)}`;
    for (const name of secretSettings) expect(text).not.toContain(String(pos.settings[name]));
    for (const word of wordsOf(order)) expect(text, 'the member’s').not.toContain(word);
  }

  async function ticketOf({ pos, create }: Stage<Settings>, options: SampleOptions = {}): Promise<Ticket> {
    const order = orderOf(options);
    await create(order);
    const reference = referenceOf(order.serviceOrderId);
    const ticket = pos.tickets.find((ticket) => ticket.serviceOrderId === reference);
    return ticket ?? expect.unreachable(`no ticket for ${reference}; ${refusalsOf(pos)}`);
  }

  function received({ headers, body }: SignedWebhook): Webhook {
    return { headers, body, url: WEBHOOK_URL, receivedAt: new Date(), verified: false };
  }

  return {
    provider,
    fixtures,
    webhookAuth,
    referenceOf,
    statuses,
    /** A status that has a meaning. */
    said,
    /** If false, an operator decides about an order in doubt. */
    canRepeat: provider.deduplicates || provider.findOrder !== undefined,
    stage,
    failureOf,
    expectNoSecrets,
    ticketOf,
    received,
    /** Settings of a stage with some replaced, by the simulator's names. */
    settingsWith: (at: Stage<Settings>, others: Readonly<Record<string, unknown>>): Settings =>
      provider.settings.parse({ ...at.pos.settings, ...others }),
    /** The core's next step: a repeat if the POS deduplicates, else `findOrder`. */
    async again(at: Stage<Settings>, order: CanonicalOrder): Promise<OrderRef | undefined> {
      if (provider.deduplicates) return at.create(order);
      return provider.findOrder?.(order.serviceOrderId, at.contextOf());
    },
    async close(): Promise<void> {
      for (const end of ends.splice(0)) await end();
    },
  };
}

/** The member's own texts in an order. */
function wordsOf({ member, fulfillment, items, notes }: CanonicalOrder): string[] {
  const { line1, instructions } = fulfillment.destination ?? {};
  const texts = [member.name, member.email, member.phone?.slice(3), line1, instructions, notes];
  return [...texts, ...items.map((item) => item.notes)].filter((text) => text !== undefined);
}
