import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import { unlessStopped } from '../../core/live/status-endpoint.ts';
import { publishKitchens, settleKitchens } from '../../core/kitchens/settle-kitchens.ts';
import { findSuspects, probeKitchens } from '../../core/polling/probe-kitchens.ts';
import { kitchenEvent, type OurEvent, type SendEvent } from '../../core/domain/cloud-event.ts';
import type { Availability } from '../../core/domain/availability.ts';
import { eventTopic } from '../../pubsub/event-topic.ts';
import { webhookOf } from './live.ts';
import type { Orders } from './orders.ts';

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'providers' | 'pubsub'>;

export type Kitchens = ReturnType<typeof kitchensModule>;

/** Finds out whether kitchens take orders, and tells the platform. */
export function kitchensModule(app: App, config: Config, { breaker }: Pick<Orders, 'breaker'>) {
  const { database, observability, providers, pubsub, log } = app;
  const { pool, clock } = database;
  const { observe } = observability;
  const { KITCHEN_TOPIC: topic, AVAILABILITY_TOKEN: token, STATUS_WEBHOOK_URL: url } = config;
  const webhook = webhookOf(app, config);
  const ways = [
    topic === undefined || pubsub === undefined ? undefined : eventTopic(pubsub, topic),
    webhook && url && unlessStopped(pool, url, webhook),
  ].filter((way) => typeof way === 'function');
  const send = byAll(ways);
  const publish = (availability: Availability): Promise<unknown> => send(kitchenEvent(availability));
  const publisher = ways.length === 0 ? undefined : publishKitchens({ pool, publish, observe, log });
  const { silentLocations } = breaker;
  return {
    endpoint: token === undefined ? undefined : { pool, token, observe },
    publisher: { name: 'kitchens', ...(publisher && { loops: { kitchens: publisher }, stop: publisher.stop }) },
    async settle() {
      const settled = await settleKitchens(pool);
      for (const each of settled) observe({ what: 'kitchen', ...each });
      if (settled.length > 0) publisher?.wake();
    },
    suspect: () => findSuspects({ ...providers, pool, silentLocations }),
    probe: async (stopping: AbortSignal) => probeKitchens({ ...providers, pool, now: clock.now }, { stopping }),
  };
}

/**
 * Makes a function that resolves when all ways have taken an event. A way that fails is tried again by the caller, and the
 * ways that took the event do not get it once more from this process.
 */
function byAll(ways: readonly SendEvent[]): (event: OurEvent) => Promise<void> {
  /** The sequence that each way took last, of subjects that another way has not taken yet. */
  const taken = ways.map((send) => ({ send, last: new Map<string, number>() }));
  return async (event) => {
    const { subject, sequence } = event;
    await Promise.all(
      taken.map(async ({ send, last }) => {
        // guard: once-by-each-way
        if (last.get(subject) === sequence) return;
        await send(event);
        last.set(subject, sequence);
      }),
    );
    for (const { last } of taken) last.delete(subject);
  };
}
