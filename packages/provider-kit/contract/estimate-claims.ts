import { expect } from 'vitest';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Stage } from './open-stage.ts';
import { FULFILLMENTS, orderOf, WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';
import type { Estimate } from './provider-fixtures.ts';

/** Claims about the POS's estimates. */
export function estimateClaims<Settings>(
  theatre: Theatre<Settings>,
  claim: Claim,
  estimates: NonNullable<Theatre<Settings>['fixtures']['estimates']>,
): void {
  const { provider, stage, ticketOf, received } = theatre;

  async function told(at: Stage<Settings>, type: (typeof FULFILLMENTS)[number]): Promise<readonly StatusEvent[]> {
    const ticket = await ticketOf(at, orderOf({ type }));
    return provider.translateWebhook(received(at.pos.sign(WEBHOOK_URL, ticket, estimates.native)), at.settings);
  }

  const msOf = (time: string | undefined): number | undefined => (time === undefined ? undefined : Date.parse(time));

  for (const type of FULFILLMENTS) {
    const named: readonly Estimate[] = estimates[type] ?? [];
    claim(`of a ${type} order are read as ${named.join(' and ') || 'nothing'}, with the POS's own time`, async () => {
      const at = await stage();
      const time = Math.ceil(Date.now() / 60_000 + 25) * 60_000;
      at.pos.estimate = new Date(time).toISOString();
      const [event] = await told(at, type);
      expect({ ready: msOf(event?.estimatedReadyAt), delivery: msOf(event?.estimatedDeliveryAt) }).toEqual({
        ready: named.includes('estimatedReadyAt') ? time : undefined,
        delivery: named.includes('estimatedDeliveryAt') ? time : undefined,
      });
      if (named.length > 0 && !estimates.untimed) expect(event?.occurredAt, 'the newest estimate counts').toBeDefined();
    });

    claim(`of a ${type} order are left out if they are invalid times, without losing the status`, async () => {
      const at = await stage();
      const before = await told(at, type);
      at.pos.estimate = 'soon';
      const events = await told(at, type);
      expect(events.map(({ status }) => status)).toEqual(before.map(({ status }) => status));
      for (const event of events) {
        expect([event.estimatedReadyAt, event.estimatedDeliveryAt]).toEqual([undefined, undefined]);
      }
    });
  }
}
