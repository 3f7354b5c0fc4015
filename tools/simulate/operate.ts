/** What people do during a run: operators, and kitchens that close or are busy. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { Webhook } from 'standardwebhooks';
import type { History } from '../chaos/history.ts';
import { sendStatus, type Kitchen } from '../chaos/send-status.ts';
import type { Served } from '../chaos/serve-orders.ts';
import { requestCancellation } from '../../src/core/cancellations/operator-cancellations.ts';
import { pauseLocation, resumeLocation } from '../../src/core/kitchens/pause-location.ts';
import { retryPlacement } from '../../src/core/placements/retry-placement.ts';
import type { Act } from './faults.ts';
import type { OriginOfRun } from './network.ts';

export type KitchenOfRun = Kitchen & {
  /** Saves the settings of its location again. */
  save: () => Promise<unknown>;
  /** Whether its POS can be asked what became of an order. */
  isAsked: boolean;
};

const WEBHOOK_MS = 3_000;
const SALES = 3;
const WHOLE_CHAIN = 0.3;
const EXTRA_MINUTES = 20;

/** @returns a function that does what is planned, and resolves when it is over */
export function operate(about: {
  pool: Pool;
  history: History;
  kitchens: readonly KitchenOfRun[];
  /** The orders by their numbers; undefined for one that its member cancels, or that is not placed. */
  orders: readonly (string | undefined)[];
  secret: string;
  /** Gets the webhooks that were answered 200. */
  served: Pick<Served, 'acknowledged'>;
  /** The POS systems, the platform and Pub/Sub. */
  origins: ReadonlyMap<string, OriginOfRun>;
  restore: (act: Act) => Promise<void>;
}): (act: Act) => Promise<void> {
  const { pool, history, kitchens, orders, secret, served, origins, restore } = about;
  const signer = new Webhook(secret);

  /** Sends what a kitchen is. It is not repeated: the next report counts. */
  const report = async ({ webhookUrl }: Kitchen, id: string, kitchen: object): Promise<void> => {
    const body = JSON.stringify({ eventType: 'kitchen.status', kitchen });
    const at = new Date();
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': signer.sign(id, at, body),
    };
    const signal = AbortSignal.timeout(WEBHOOK_MS);
    await fetch(webhookUrl, { method: 'POST', headers, body, signal }).catch(() => {});
  };

  /** Sends sales of which no order of ours knows, and a body that nobody can read. */
  const sell = async (kitchen: Kitchen, id: string): Promise<void> => {
    for (let nth = 1; nth <= SALES; nth += 1) {
      const report = { providerOrderId: `${id} ${nth}`, status: 'completed' };
      const { status, webhookId, outcome } = await sendStatus(kitchen, report, WEBHOOK_MS);
      if (status === 200) served.acknowledged.push({ webhookId, outcome, locationId: kitchen.locationId });
    }
    const signal = AbortSignal.timeout(WEBHOOK_MS);
    await fetch(kitchen.webhookUrl, { method: 'POST', body: '{"eventType":', signal }).catch(() => {});
  };

  const standard = kitchens.filter((each) => each.integration === 'standard');
  const one = <Item>(from: readonly Item[], { by }: Act): Item | undefined => from[Math.floor(by * from.length)];
  const toOrder =
    (what: (pool: Pool, order: string) => Promise<unknown>) =>
    async (act: Act): Promise<void> => {
      const order = one(orders, act);
      if (order === undefined) return;
      history.note(act.kind, { order });
      await what(pool, order);
    };
  const at =
    (from: readonly KitchenOfRun[], what: (kitchen: KitchenOfRun, act: Act) => Promise<unknown>) =>
    async (act: Act): Promise<void> => {
      // Sometimes it is the whole chain.
      const those = act.by < WHOLE_CHAIN ? from : [one(from, act)].filter((each) => each !== undefined);
      history.note(act.kind, { locations: those.map(({ locationId }) => locationId), forMs: act.forMs });
      await Promise.all(those.map((kitchen) => what(kitchen, act)));
      history.note(`${act.kind}: over`, { locations: those.length });
    };
  /** A kitchen reports a state with an end, and mostly reports earlier that it is open. */
  const becomes = (state: object) =>
    at(standard, async (kitchen, { id, forMs }) => {
      await report(kitchen, `${id} ${kitchen.locationId}`, {
        ...state,
        until: new Date(Date.now() + 2 * forMs).toISOString(),
      });
      await sleep(forMs);
      await report(kitchen, `${id} ${kitchen.locationId} open`, { state: 'open' });
    });
  const acts: Readonly<Record<Act['kind'], (act: Act) => Promise<void>>> = {
    'operator cancels': toOrder(requestCancellation),
    'operator retries': toOrder(retryPlacement),
    'settings saved': at(kitchens, (kitchen) => kitchen.save()),
    'location paused': at(kitchens, async ({ locationId }, { forMs }) => {
      await pauseLocation(pool, locationId);
      await sleep(forMs);
      await resumeLocation(pool, locationId);
    }),
    // Only this POS reports its kitchen.
    'kitchen closed': becomes({ state: 'closed' }),
    'kitchen busy': becomes({ state: 'busy', extraMinutes: EXTRA_MINUTES }),
    // A vendor's webhooks are about its own tickets.
    'till sells': at(
      kitchens.filter(({ pos }) => pos.ordersUrl !== undefined),
      (kitchen, { id }) => sell(kitchen, `${id} ${kitchen.locationId}`),
    ),
    'database restored': restore,
    async away(act) {
      const [origin, its] = one([...origins], act) ?? [];
      if (its === undefined) return;
      its.away = (act.by * origins.size) % 1 < 0.5 ? 'refuses' : 'hangs';
      history.note(`${origin} ${its.away}`, { forMs: act.forMs });
      await sleep(act.forMs);
      its.away = undefined;
    },
  };
  return (act) => acts[act.kind](act);
}
