import { setTimeout as sleep } from 'node:timers/promises';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import type { PosFault, StatusReport, Ticket } from '../../world/pos/start-pos.ts';
import type { History } from './history.ts';
import type { Doing, Script } from './script-order.ts';
import type { Answer } from './send-status.ts';
import { sendWebhook } from './send-webhook.ts';
import type { StageDatabase } from './faulty-postgres.ts';
import type { Kitchen } from './send-status.ts';
import type { Stage } from './set-stage.ts';

/** A webhook that was answered 200. */
export type Acknowledged = {
  webhookId: string;
  /** `accepted` if it was spilled. Its final outcome is then only in Postgres, which `checkBooks` reads. */
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
  /** Orders whose signal Pub/Sub has acknowledged, or the service has answered 204. */
  accepted: Set<string>;
  /** All webhooks that were answered 200. */
  acknowledged: Acknowledged[];
  /** Every answer to a webhook that was sent to its own location's path, with its own token. */
  answers: Answer[];
  /** Statuses that the POS reported or tried to report, by order. */
  reported: Map<string, Set<string>>;
  /** Orders that their member has cancelled or changed, if Pub/Sub has acknowledged the signal about it. */
  cancelled: Set<string>;
  changed: Set<string>;
  /** The first locations of orders that their members have moved. */
  moved: Map<string, string>;
  /** How often a POS that has the ticket was asked to cancel it, by order. */
  cancels: Map<string, number>;
  /** Orders for which a request with another location's token was not refused. */
  trespasses: string[];
};

/** A member's data in a run. It must never appear in a log. */
export const MEMBER = {
  id: 'member-planted',
  name: 'Planted Name',
  email: 'planted@example.com',
  phone: '+4930999999',
};
/** The member's text. It must never appear in a log either. */
export const NOTES = 'planted notes';
export const CANCEL_REASON = 'planted reason';
/** What a member's change adds to the notes. */
export const CHANGED = ', changed';
const PUBLISH_AGAIN_MS = 500;
/** The longest time that a POS delays its answer to wait until its early report is received. */
const EARLY_MS = 1_500;
/** The time that a POS takes to make a ticket, if the member cancels or changes the order meanwhile. */
const MAKING_MS = 400;
/** Time until a POS with the answer `later` reports that it has cancelled. */
const LATER_MS = 1_500;
/** An order with one of these statuses is cooked and cannot be cancelled any more. */
export const COOKED = ['ready', 'en_route', 'completed'];

type Serving = {
  stage: Stage<StageDatabase>;
  scripts: readonly Script[];
  ordersPerSecond: number;
  history: History;
  /** Gets each order when its member has placed it. */
  onPlaced: (serviceOrderId: string) => void;
  /** Ends the repeats of patient vendors. */
  signal: AbortSignal;
  /** From then on, no order is placed. */
  closed?: AbortSignal | undefined;
};

/** What is observed and under way. */
type Playing = Serving & {
  readonly served: Served;
  readonly scriptOf: ReadonlyMap<string, Script>;
  readonly kitchenOf: ReadonlyMap<string, Kitchen>;
  readonly underWay: Set<Promise<void>>;
};

/**
 * Plays members and kitchens by the scripts: publishes each order when it is due, and sends its reports when a POS
 * makes a ticket. Returns its observations, and a function that waits until nothing more is sent.
 */
export function serveOrders(about: Serving): Served & { finished(): Promise<{ waited: boolean }> } {
  const { stage, scripts } = about;
  const playing: Playing = {
    ...about,
    served: {
      accepted: new Set(),
      acknowledged: [],
      answers: [],
      reported: new Map(),
      cancelled: new Set(),
      changed: new Set(),
      moved: new Map(),
      cancels: new Map(),
      trespasses: [],
    },
    scriptOf: new Map(scripts.map((script) => [script.serviceOrderId, script])),
    kitchenOf: new Map(stage.kitchens.map((kitchen) => [kitchen.locationId, kitchen])),
    underWay: new Set(),
  };
  const { served, underWay } = playing;
  for (const kitchen of stage.kitchens) {
    kitchen.pos.onTicket = async (ticket) => void (await cook(playing, kitchen, ticket));
    kitchen.pos.miscancel = ({ serviceOrderId }) => cancel(playing, kitchen, serviceOrderId);
  }
  begin(playing, placeAll(playing));
  return {
    ...served,
    async finished() {
      const waited = underWay.size > 0;
      while (underWay.size > 0) await Promise.all(underWay);
      return { waited };
    },
  };
}

const begin = (playing: Playing, work: Promise<void>): void => {
  const working: Promise<void> = work.finally(() => playing.underWay.delete(working));
  playing.underWay.add(working);
};

const publish = async (playing: Playing, order: string, taken = playing.served.accepted): Promise<void> => {
  while (!playing.signal.aborted) {
    try {
      await playing.stage.signal(order);
      taken.add(order);
      playing.history.note('signal published', { order });
      return;
    } catch {
      playing.history.note('signal not published', { order });
      await sleep(PUBLISH_AGAIN_MS);
    }
  }
};

/** Cancels or changes an order for its member. Does nothing if the script counts the time from another event. */
const disposeFrom = (
  playing: Playing,
  from: Doing['from'],
  { serviceOrderId, locationId, cancel, change }: Script,
): void => {
  const dispose = async (what: 'cancelled' | 'changed', afterMs: number, fields: object): Promise<void> => {
    if (afterMs > 0) await sleep(afterMs);
    const moves = 'locationId' in fields;
    playing.history.note(`its member has ${what} it`, {
      order: serviceOrderId,
      ...(moves && { to: fields.locationId }),
    });
    if (moves) playing.served.moved.set(serviceOrderId, locationId);
    const order = playing.stage.platform.orders.get(serviceOrderId) as CanonicalOrder;
    const isEmptied = what === 'cancelled' && cancel?.empties === true;
    const items = isEmptied ? order.items.map((item) => ({ ...item, quantity: 0 })) : order.items;
    playing.stage.platform.orders.set(serviceOrderId, { ...order, items, ...fields });
    await publish(playing, serviceOrderId, playing.served[what]);
  };
  if (change?.from === from) {
    const moved = change.movesTo !== undefined && { locationId: change.movesTo };
    begin(playing, dispose('changed', change.afterMs, { notes: NOTES + CHANGED, ...moved }));
  }
  if (cancel?.from !== from) return;
  const fields = { cancelledAt: '2026-11-23T18:00:00Z', cancelReason: CANCEL_REASON };
  begin(playing, dispose('cancelled', cancel.afterMs, fields));
};

const placeAll = async (playing: Playing): Promise<void> => {
  for (const [nth, script] of playing.scripts.entries()) {
    await sleep(Math.max(0, (nth * 1_000) / playing.ordersPerSecond - playing.history.now()));
    if (playing.closed?.aborted === true) return;
    const { serviceOrderId, locationId, type } = script;
    const order = sampleOrder({ serviceOrderId, locationId, type, member: MEMBER, notes: NOTES });
    playing.stage.platform.orders.set(serviceOrderId, order);
    disposeFrom(playing, 'order', script);
    playing.onPlaced(serviceOrderId);
    for (let signals = 0; signals < script.signals; signals += 1) begin(playing, publish(playing, serviceOrderId));
  }
};

const send = (
  playing: Playing,
  kitchen: Kitchen,
  order: string,
  report: StatusReport,
  foreign = false,
): Promise<void> =>
  sendWebhook({
    kitchen,
    report,
    signal: playing.signal,
    onAnswer(answer) {
      const { status, outcome, webhookId } = answer;
      const { locationId } = kitchen;
      const what = foreign ? 'foreign webhook answered' : 'webhook answered';
      playing.history.note(what, { order, from: locationId, says: report.status, status, outcome, webhookId });
      playing.served.answers.push(answer);
      if (status !== 200) return;
      const byPosIdAlone = report.serviceOrderId === undefined;
      playing.served.acknowledged.push({
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

const cook = (playing: Playing, kitchen: Kitchen, ticket: Ticket): Promise<unknown> | undefined => {
  const { serviceOrderId: order, providerOrderId } = ticket;
  playing.history.note('ticket made', {
    order,
    at: playing.history.now(),
    locationId: kitchen.locationId,
    providerOrderId,
  });
  const script = playing.scriptOf.get(order);
  if (script === undefined) return undefined;
  const reported = playing.served.reported.get(order) ?? new Set();
  playing.served.reported.set(order, reported);
  const sends = script.reports.map(async ({ status, afterMs, names, copies }, nth) => {
    const isEarly = script.early && nth === 0;
    if (!isEarly) await sleep(afterMs);
    if (ticket.cancelled !== undefined) return;
    reported.add(status);
    const report: StatusReport = {
      status,
      ...(names !== 'theirs' && !isEarly && { serviceOrderId: order }),
      ...((names !== 'ours' || isEarly) && { providerOrderId }),
    };
    await Promise.all(Array.from({ length: copies }, () => send(playing, kitchen, order, report)));
  });
  for (const sending of sends) begin(playing, sending);
  const meddler = playing.kitchenOf.get(script.meddler ?? '');
  if (meddler !== undefined) begin(playing, meddle(playing, meddler, kitchen, order, providerOrderId));
  disposeFrom(playing, 'ticket', script);
  const isDisposed = [script.cancel, script.change].some((each) => each?.from === 'ticket' && each.afterMs === 0);
  const making = isDisposed ? sleep(MAKING_MS) : undefined;
  return script.early ? Promise.all([making, Promise.race([sends[0], sleep(EARLY_MS)])]) : making;
};

/** Tries to cancel another location's order: by our id, by the POS's, and at the victim's path with its own token. */
const meddle = async (
  playing: Playing,
  meddler: Kitchen,
  victim: Kitchen,
  order: string,
  providerOrderId: string,
): Promise<void> => {
  await sleep(500);
  await send(playing, meddler, order, { serviceOrderId: order, status: 'cancelled' }, true);
  await send(playing, meddler, order, { providerOrderId, status: 'cancelled' }, true);
  const theirs = new URL(victim.webhookUrl);
  theirs.search = new URL(meddler.webhookUrl).search;
  const answer = await meddler.pos
    .sendStatus(theirs.href, { serviceOrderId: order, status: 'cancelled' })
    .catch(() => ({ status: 0 }));
  playing.history.note('trespass answered', { order, from: meddler.locationId, status: answer.status });
  if (answer.status < 300 && answer.status > 0) playing.served.trespasses.push(order);
};

/** The kitchen's answer to a cancel. Undefined if the simulator answers as usual. */
const cancel = (playing: Playing, kitchen: Kitchen, order: string): PosFault | undefined => {
  const ticket = kitchen.pos.tickets.findLast((each) => each.serviceOrderId === order);
  playing.history.note('asked to cancel', { order, there: ticket !== undefined });
  if (ticket === undefined) return undefined;
  const nth = (playing.served.cancels.get(order) ?? 0) + 1;
  playing.served.cancels.set(order, nth);
  const answer = playing.scriptOf.get(order)?.cancel?.answer;
  if (answer === 'late' || COOKED.some((status) => playing.served.reported.get(order)?.has(status))) {
    return { status: 409, body: { reason: 'It is in the oven.' } };
  }
  if (answer === 'lost' && nth === 1) return 'drop-answer';
  // Only a patient vendor repeats a lost confirmation. With others, a person would be asked three minutes later.
  if (answer !== 'later' || kitchen.vendor.name !== 'patient') return undefined;
  ticket.cancelled ??= {};
  playing.served.reported.get(order)?.add('cancelled');
  const confirm = (): Promise<void> => send(playing, kitchen, order, { serviceOrderId: order, status: 'cancelled' });
  if (nth === 1) begin(playing, sleep(LATER_MS).then(confirm));
  return { status: 202 };
};
