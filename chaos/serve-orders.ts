import { setTimeout as sleep } from 'node:timers/promises';
import { sampleOrder } from '../test/support/sample-order.ts';
import type { StatusReport, Ticket } from '../test/support/start-pos.ts';
import type { History } from './history.ts';
import type { Script } from './script-order.ts';
import type { Answer } from './send-status.ts';
import { sendWebhook } from './send-webhook.ts';
import type { Kitchen, Stage, StageDatabase } from './set-stage.ts';

/** A webhook that was answered 200. */
export type Acknowledged = {
  webhookId: string;
  /** `accepted` if it was spilled: what became of it then is told by nobody but the books. */
  outcome: string;
  locationId: string;
  /** Its order and status; absent for an event that is not about an order. */
  order?: string;
  status?: string;
  /** True if it did not name our id. */
  byPosIdAlone?: boolean;
  /** True if its sender is not the order's location. */
  foreign?: boolean;
};

export type Served = {
  /** Orders whose signal Pub/Sub has taken. */
  accepted: Set<string>;
  /** All webhooks that were answered 200. */
  acknowledged: Acknowledged[];
  /** Every answer to a webhook that was sent to its own location's path, with its own token. */
  answers: Answer[];
  /** Statuses that the POS reported or tried to report, by order. */
  reported: Map<string, Set<string>>;
  /** Requests with another location's token in a location's path that were not refused. */
  trespasses: string[];
};

/** A member's data in a run. It must never appear in a log. */
export const MEMBER = {
  id: 'member-planted',
  name: 'Planted Name',
  email: 'planted@example.com',
  phone: '+4930999999',
};
/** The member's text. It must never appear either. */
export const NOTES = 'planted notes';
const PUBLISH_AGAIN_MS = 500;
/** Time that a POS waits with its answer for us to receive its early report. */
const EARLY_MS = 1_500;

/**
 * Plays members and kitchens by the scripts: publishes each order when it is due, and sends its reports when a POS
 * makes a ticket. Returns what it observes, and a promise for when nobody sends any more.
 */
export function serveOrders(about: {
  stage: Stage<StageDatabase>;
  scripts: readonly Script[];
  ordersPerSecond: number;
  history: History;
  /** Gets each order when its member has placed it. */
  onPlaced: (serviceOrderId: string) => void;
  /** Ends the repeats of patient vendors. */
  signal: AbortSignal;
}): Served & { finished(): Promise<{ waited: boolean }> } {
  const { stage, scripts, ordersPerSecond, history, onPlaced, signal } = about;
  const served: Served = {
    accepted: new Set(),
    acknowledged: [],
    answers: [],
    reported: new Map(),
    trespasses: [],
  };
  const scriptOf = new Map(scripts.map((script) => [script.serviceOrderId, script]));
  const kitchenOf = new Map(stage.kitchens.map((kitchen) => [kitchen.locationId, kitchen]));
  const underWay = new Set<Promise<void>>();
  const begin = (work: Promise<void>): void => {
    const working: Promise<void> = work.finally(() => underWay.delete(working));
    underWay.add(working);
  };

  const publish = async (script: Script): Promise<void> => {
    const { serviceOrderId: order } = script;
    const data = Buffer.from(JSON.stringify({ orderId: order }));
    while (!signal.aborted) {
      try {
        await stage.orders.publishMessage({ data });
        served.accepted.add(order);
        history.note('signal published', { order });
        return;
      } catch {
        history.note('signal not published', { order });
        await sleep(PUBLISH_AGAIN_MS);
      }
    }
  };

  const placeAll = async (): Promise<void> => {
    for (const [nth, script] of scripts.entries()) {
      await sleep(Math.max(0, (nth * 1_000) / ordersPerSecond - history.now()));
      const { serviceOrderId, locationId, type } = script;
      const order = sampleOrder({ serviceOrderId, locationId, type, member: MEMBER, notes: NOTES });
      stage.platform.orders.set(serviceOrderId, order);
      onPlaced(serviceOrderId);
      for (let signals = 0; signals < script.signals; signals += 1) begin(publish(script));
    }
  };

  const send = (kitchen: Kitchen, order: string, report: StatusReport, foreign = false): Promise<void> =>
    sendWebhook({
      kitchen,
      report,
      signal,
      onAnswer(answer) {
        const { status, outcome, webhookId } = answer;
        const { locationId } = kitchen;
        const what = foreign ? 'foreign webhook answered' : 'webhook answered';
        history.note(what, { order, from: locationId, says: report.status, status, outcome, webhookId });
        served.answers.push(answer);
        if (status !== 200) return;
        const byPosIdAlone = report.serviceOrderId === undefined;
        served.acknowledged.push({
          webhookId,
          outcome,
          locationId,
          order,
          status: report.status,
          byPosIdAlone,
          foreign,
        });
      },
    });

  const cook = (kitchen: Kitchen, { serviceOrderId: order, providerOrderId }: Ticket): Promise<void> | undefined => {
    history.note('ticket made', { order, at: history.now(), locationId: kitchen.locationId, providerOrderId });
    const script = scriptOf.get(order);
    if (script === undefined) return undefined;
    const reported = served.reported.get(order) ?? new Set();
    served.reported.set(order, reported);
    const sends = script.reports.map(async ({ status, afterMs, names, copies }, nth) => {
      const isEarly = script.early && nth === 0;
      if (!isEarly) await sleep(afterMs);
      reported.add(status);
      const report: StatusReport = {
        status,
        ...(names !== 'theirs' && !isEarly && { serviceOrderId: order }),
        ...((names !== 'ours' || isEarly) && { providerOrderId }),
      };
      await Promise.all(Array.from({ length: copies }, () => send(kitchen, order, report)));
    });
    for (const sending of sends) begin(sending);
    const meddler = kitchenOf.get(script.meddler ?? '');
    if (meddler !== undefined) begin(meddle(meddler, kitchen, order, providerOrderId));
    return script.early ? Promise.race([sends[0], sleep(EARLY_MS)]) : undefined;
  };

  /** Tries to cancel another location's order: by our id, by the POS's, and with its own token in the other's path. */
  const meddle = async (meddler: Kitchen, victim: Kitchen, order: string, providerOrderId: string): Promise<void> => {
    await sleep(500);
    await send(meddler, order, { serviceOrderId: order, status: 'cancelled' }, true);
    await send(meddler, order, { providerOrderId, status: 'cancelled' }, true);
    const theirs = new URL(victim.webhookUrl);
    theirs.search = new URL(meddler.webhookUrl).search;
    const answer = await meddler.pos
      .sendStatus(theirs.href, { serviceOrderId: order, status: 'cancelled' })
      .catch(() => ({ status: 0 }));
    history.note('trespass answered', { order, from: meddler.locationId, status: answer.status });
    if (answer.status < 300 && answer.status > 0) served.trespasses.push(order);
  };

  for (const kitchen of stage.kitchens) kitchen.pos.onTicket = (ticket) => cook(kitchen, ticket);
  begin(placeAll());
  return {
    ...served,
    async finished() {
      const waited = underWay.size > 0;
      while (underWay.size > 0) await Promise.all(underWay);
      return { waited };
    },
  };
}
