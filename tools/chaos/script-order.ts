import type { FulfillmentType, Status } from '../../src/core/domain/lifecycle.ts';
import { chance, pick } from './chance.ts';
import type { Kind } from './plan-faults.ts';

/** A webhook that the POS will send about an order, `afterMs` milliseconds after the ticket was made. */
export type Report = {
  status: Status;
  afterMs: number;
  /** The ids in it: ours, the POS's, or both. */
  names: 'ours' | 'theirs' | 'both';
  /** How many copies are sent at the same time. */
  copies: number;
};

/** When the member acts: `afterMs` milliseconds after the order was placed, or after its ticket was made. */
export type Doing = { from: 'order' | 'ticket'; afterMs: number };

/**
 * The answer of the POS to a cancel. `cancelled`: at once. `later`: it is cancelled, which a webhook reports later.
 * `late`: it is too late to cancel. `lost`: the first answer does not arrive.
 */
export type CancelAnswer = 'cancelled' | 'later' | 'late' | 'lost';

/** The plan for one order, derived from the seed. */
export type Script = {
  serviceOrderId: string;
  locationId: string;
  type: FulfillmentType;
  /** How many times the platform publishes its signal. */
  signals: number;
  /** True if the first report is sent before the POS answers `createOrder`. */
  early: boolean;
  reports: Report[];
  /** `empties`: the platform sets all quantities to 0, so the order cannot be read any more. */
  cancel: (Doing & { answer: CancelAnswer; empties: boolean }) | undefined;
  /** A change may also move the order to another location. */
  change: (Doing & { movesTo: string | undefined }) | undefined;
  /** A foreign location that tries to cancel this order. */
  meddler: string | undefined;
  /** The parts of the plan that are faults. */
  faults: Kind[];
};

const COURSE: Record<FulfillmentType, readonly Status[]> = {
  pickup: ['received', 'in_progress', 'ready', 'completed'],
  delivery: ['received', 'in_progress', 'ready', 'en_route', 'completed'],
};
/** Milliseconds between two steps in the kitchen. */
const STEP_MS: readonly [shortest: number, longest: number] = [200, 1_800];
/** The default for the longest time until a member cancels or changes the order. */
const DOING_MS = 3_000;
/** The share of the changes that move the order to another location. */
const MOVED = 0.3;

/**
 * @param nth the order's number within the run, from 1
 * @param about.longestStepMs the longest time between two statuses; longer than the default for a slow kitchen
 * @param about.cancels the share of orders that their member cancels
 * @param about.emptied the share of these cancels by which the platform empties the order
 * @param about.changes the share of orders that their member changes
 * @param about.doingMs the longest time until a member cancels or changes the order
 */
export function scriptOrder(
  seed: number,
  nth: number,
  locationIds: readonly string[],
  only: ReadonlySet<Kind>,
  { longestStepMs = STEP_MS[1], cancels = 0.1, changes = 0.1, doingMs = DOING_MS, emptied = 0.5 } = {},
): Script {
  const serviceOrderId = `chaos-${seed}-${nth}`;
  const drawn = (about: string, step = 0): number => chance(seed, 'order', nth, about, step);
  const faults: Kind[] = [];
  const happens = (kind: Kind, probability: number, step = 0): boolean => {
    const does = only.has(kind) && drawn(kind, step) < probability;
    if (does) faults.push(kind);
    return does;
  };

  const locationId = pick(locationIds, drawn('location'));
  const type = pick(['pickup', 'delivery'] as const, drawn('type'));
  const doing = (about: 'cancel' | 'change'): Doing => {
    const when = drawn(about, 1);
    const afterMs = doingMs * drawn(about, 2);
    // With `afterMs` 0, it happens before the first signal (`order`), or while the POS makes the ticket (`ticket`).
    if (when < 0.2) return { from: 'order', afterMs: 0 };
    if (when < 0.4) return { from: 'order', afterMs };
    return { from: 'ticket', afterMs: when < 0.6 ? 0 : afterMs };
  };
  const answer = pick(['cancelled', 'cancelled', 'later', 'late', 'lost'] as const, drawn('cancel', 3));
  const cancel = happens('cancel', cancels, 0)
    ? { ...doing('cancel'), answer, empties: drawn('cancel', 4) < emptied }
    : undefined;
  const isChanged = only.has('cancel') && drawn('change') < changes;

  const ends = drawn('end');
  // A till closes the check of a cancelled order, which must not complete the order.
  const whole = ends < 0.08 ? [...COURSE[type].slice(0, 2), 'cancelled' as const, 'completed' as const] : COURSE[type];
  // If the kitchen does not end the order, its last state shows whether the member's cancel or change had an effect.
  const course = (cancel !== undefined || isChanged) && drawn('unended') < 0.5 ? COURSE[type].slice(0, 2) : whole;

  let at = 0;
  const reports = course.map((status, step): Report => {
    at += STEP_MS[0] + drawn('step', step) * (longestStepMs - STEP_MS[0]);
    return {
      status,
      afterMs: at + (happens('delay', 0.05, step) ? 3_000 + 5_000 * drawn('late', step) : 0),
      names: pick(['ours', 'theirs', 'both'] as const, drawn('names', step)),
      copies: happens('duplicate', 0.1, step) ? 2 + Math.floor(drawn('copies', step) * 4) : 1,
    };
  });
  for (const [step, report] of reports.entries()) {
    const next = reports[step + 1];
    if (next === undefined || !happens('reorder', 0.1, step)) continue;
    [report.afterMs, next.afterMs] = [next.afterMs, report.afterMs];
  }
  const others = locationIds.filter((other) => other !== locationId);
  const meddler = happens('foreign', 0.05) ? pick(others, drawn('meddler')) : undefined;
  const isMoved = isChanged && meddler === undefined && drawn('change', 3) < MOVED;
  const change = isChanged
    ? { ...doing('change'), movesTo: isMoved ? pick(others, drawn('change', 4)) : undefined }
    : undefined;
  return {
    serviceOrderId,
    locationId,
    type,
    signals: happens('duplicate', 0.1, -1) ? 2 : 1,
    early: happens('early', 0.1),
    reports,
    cancel,
    change,
    meddler,
    faults,
  };
}
