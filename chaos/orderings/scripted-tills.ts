import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { GiveUp, NeedsOperator, TryAgain } from '../../src/core/domain/errors.ts';
import { RANK_END, rankOf, statusAt, type Status } from '../../src/core/domain/lifecycle.ts';
import type { KitchenOrder, OrderRef, StatusEvent } from '../../src/core/domain/order.ts';
import type { CancelAnswer, Provider } from '../../src/core/domain/provider.ts';

/** The fate of one request. `taken` is when the till executes the request, if its answer does not arrive. */
export type Fault = {
  how: 'answered' | 'lost' | '500' | 'died' | 'unreachable' | 'unauthorised' | 'refused';
  taken: 'at once' | 'later' | 'never';
  /** Milliseconds until all of this happens. */
  afterMs: number;
};

/** How a till behaves. Each list has the faults of the first requests of a kind. Later requests have no faults. */
export type TillScript = {
  creates: readonly Fault[];
  cancels: readonly Fault[];
  finds: readonly Fault[];
  reads: readonly Fault[];
  /** From this status on, it is too late to cancel. */
  tooLateFrom: Status;
  /** True if it answers `requested` to a cancel. A webhook then reports the result later, or never. */
  confirms: boolean;
  /** True if a cancel needs the POS's own id. */
  needsPosId: boolean;
};

/** One order's till. */
export type Till = TillScript & {
  kind: Kind;
  /** Every order that was sent, with its fault, even if it did not arrive. */
  sent: { order: KitchenOrder; fault: Fault }[];
  tickets: { providerOrderId: string; order: KitchenOrder; live: boolean }[];
  /** The number of requests to cancel that may have arrived. */
  mayHaveCancelled: number;
  asked: Record<'creates' | 'cancels' | 'finds' | 'reads', number>;
  rank: number;
  /** The statuses that it has reported in webhooks. */
  told: Set<Status>;
  /** Requests that have not arrived yet, with the time at which they will. */
  arrivals: { at: number; action: () => void }[];
};

/** What a POS can do. */
export type Kind = Record<'deduplicates' | 'finds' | 'cancels' | 'deduplicatesCancels' | 'reads', boolean>;

const BOTH = [true, false];
/** Every kind of POS. Only a POS that can cancel may deduplicate cancels. */
export const KINDS: Kind[] = BOTH.flatMap((deduplicates) =>
  BOTH.flatMap((finds) =>
    BOTH.flatMap((reads) =>
      [
        { cancels: false, deduplicatesCancels: false },
        { cancels: true, deduplicatesCancels: false },
        { cancels: true, deduplicatesCancels: true },
      ].map((cancel) => ({ deduplicates, finds, reads, ...cancel })),
    ),
  ),
);

/** The name of the integration, made of what its POS can do. */
export const nameOf = (kind: Kind): string =>
  ['till', ...Object.entries(kind).flatMap(([what, can]) => (can ? [what.toLowerCase()] : []))].join('-');

/** The time-out of calls. It is longer than any test, so that only the lease ends a call whose process died. */
const DIES_S = 120;
/** If the sender of a request was cut off, the request may still arrive at the till after this many seconds. */
const ON_ITS_WAY_S = 50;

export type Tills = {
  providers: Provider[];
  /** By the order's id. */
  of: Map<string, Till>;
  /** The number of current requests whose process still runs. */
  underWay(): number;
  /** Ids of orders with a request whose process died. */
  died: Set<string>;
  /** Delivers the requests that arrive at the POS until this time. */
  arrive(untilS: number): void;
  /** Ends the calls whose process died, and forgets all tills. */
  release(): void;
};

/** Makes tills of all kinds. @param nowS the time, in seconds, by the clock that the test moves */
export function scriptedTills(nowS: () => number): Tills {
  const of = new Map<string, Till>();
  const died = new Set<string>();
  let underWay = 0;
  let released = Promise.withResolvers<never>();
  released.promise.catch(() => {});

  const tillOf = (serviceOrderId: string): Till => {
    const till = of.get(serviceOrderId);
    if (till === undefined) throw new Error('no till has that order');
    return till;
  };

  /** Makes one request: `action` is what the till does when the request arrives. */
  const request = async <Result>(
    serviceOrderId: string,
    about: 'creates' | 'cancels' | 'finds' | 'reads',
    action: (till: Till) => Result,
    began?: (till: Till, fault: Fault) => void,
  ): Promise<Result> => {
    const till = tillOf(serviceOrderId);
    const fault = till[about][till.asked[about]++] ?? ANSWERED;
    began?.(till, fault);
    underWay += 1;
    try {
      if (fault.afterMs > 0) await sleep(fault.afterMs);
      if (fault.how === 'answered') return action(till);
      if (fault.how === 'unreachable') throw new TryAgain('no connection', { sent: false });
      if (fault.how === 'unauthorised') throw new NeedsOperator('who are you?', { httpStatus: 401 });
      if (fault.how === 'refused') throw new GiveUp('not today', { reason: 'not today', httpStatus: 422 });
      const arrives = (): void => {
        try {
          action(till);
        } catch {
          // The answer is lost, so a refusal is lost too.
        }
      };
      if (fault.taken === 'at once') arrives();
      if (fault.taken === 'later') till.arrivals.push({ at: nowS() + ON_ITS_WAY_S, action: arrives });
      if (fault.how === '500') throw new TryAgain('internal error', { sent: true, httpStatus: 500 });
      if (fault.how === 'lost') throw new TryAgain('no answer', { sent: true });
    } finally {
      underWay -= 1;
    }
    died.add(serviceOrderId);
    return released.promise;
  };

  const create = (till: Till, order: KitchenOrder): OrderRef => {
    const known = till.kind.deduplicates ? till.tickets[0] : undefined;
    if (known !== undefined) return { providerOrderId: known.providerOrderId };
    const providerOrderId = `pos-${till.tickets.length + 1}-${order.serviceOrderId}`;
    till.tickets.push({ providerOrderId, order, live: true });
    return { providerOrderId };
  };

  const cancel = (till: Till, ref: OrderRef): CancelAnswer | undefined => {
    if (till.needsPosId && ref.providerOrderId === undefined) return undefined;
    if (till.tickets.length === 0) return 'absent';
    if (till.tickets.every(({ live }) => !live)) {
      if (till.kind.deduplicatesCancels && till.rank === rankOf('cancelled')) return 'cancelled';
      throw new GiveUp('it is over', { reason: 'it is over', httpStatus: 409 });
    }
    if (till.rank >= rankOf(till.tooLateFrom)) throw new GiveUp('too late', { reason: 'too late', httpStatus: 409 });
    if (till.confirms) return 'requested';
    end(till, 'cancelled');
    return 'cancelled';
  };

  const providers = KINDS.map((kind): Provider => {
    const { deduplicates, deduplicatesCancels } = kind;
    return {
      integration: nameOf(kind),
      settings: z.object({}),
      deduplicates,
      attemptWithinS: DIES_S,
      createOrder: (order) =>
        request(
          order.serviceOrderId,
          'creates',
          (till) => create(till, order),
          (till, fault) => till.sent.push({ order, fault }),
        ),
      ...(kind.finds && {
        findOrder: (serviceOrderId) =>
          request(serviceOrderId, 'finds', ({ tickets: [ticket] }) => {
            return ticket && { providerOrderId: ticket.providerOrderId };
          }),
      }),
      ...(kind.reads && {
        readStatus: (_ref, { serviceOrderId }) =>
          request(serviceOrderId, 'reads', ({ tickets: [ticket], rank }): StatusEvent[] => {
            const status = statusAt(rank);
            if (ticket === undefined || status === null) return [];
            return [{ status, nativeStatus: status, serviceOrderId, providerOrderId: ticket.providerOrderId }];
          }),
      }),
      ...(kind.cancels && {
        deduplicatesCancels,
        cancelOrder: (ref, { serviceOrderId }) => {
          let isAbsent = false;
          return request(
            serviceOrderId,
            'cancels',
            (till) => {
              const answer = cancel(till, ref);
              isAbsent = answer === 'absent' || answer === undefined;
              return answer;
            },
            (till, { how }) => {
              if (how !== 'unreachable' && how !== 'unauthorised') till.mayHaveCancelled += 1;
            },
          ).then((answer) => {
            // Not counted, because there was no ticket to cancel, or the POS was not asked.
            if (isAbsent) tillOf(serviceOrderId).mayHaveCancelled -= 1;
            return answer;
          });
        },
      }),
      translateWebhook: ({ body }) => [JSON.parse(body.toString()) as StatusEvent],
    };
  });

  return {
    providers,
    of,
    died,
    underWay: () => underWay,
    arrive(untilS) {
      for (const till of of.values()) {
        for (const { action } of till.arrivals.filter(({ at }) => at <= untilS)) action();
        till.arrivals = till.arrivals.filter(({ at }) => at > untilS);
      }
    },
    release() {
      released.reject(new TryAgain('it was dead', { sent: true }));
      released = Promise.withResolvers<never>();
      released.promise.catch(() => {});
      died.clear();
      of.clear();
    },
  };
}

const ANSWERED: Fault = { how: 'answered', taken: 'at once', afterMs: 0 };

/** Changes a status in the kitchen. @param again only if it was reported before @returns true if the till reports it */
export function happens(till: Till, status: Status, again = false): boolean {
  if (till.tickets.length === 0 || (again && !till.told.has(status))) return false;
  till.told.add(status);
  if (till.tickets.every(({ live }) => !live) || till.rank >= RANK_END) return till.rank === rankOf(status);
  if (status === 'cancelled' || status === 'failed') end(till, status);
  else till.rank = Math.max(till.rank, rankOf(status));
  return true;
}

/** Ends the ticket: it is not cooked any more. */
export function end(till: Till, status: 'cancelled' | 'failed'): void {
  for (const ticket of till.tickets) ticket.live = false;
  till.rank = rankOf(status);
}
