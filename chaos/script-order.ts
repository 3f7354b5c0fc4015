import type { FulfillmentType, Status } from '../src/core/domain/lifecycle.ts';
import { chance, pick } from './chance.ts';
import type { Kind } from './plan-faults.ts';

/** A webhook that the POS will send about an order, `afterMs` milliseconds after it made the ticket. */
export type Report = {
  status: Status;
  afterMs: number;
  /** Which ids it names: ours, the POS's, or both. */
  names: 'ours' | 'theirs' | 'both';
  /** So many at once. */
  copies: number;
};

/** All that will be done with one order, as the seed has it. */
export type Script = {
  serviceOrderId: string;
  locationId: string;
  type: FulfillmentType;
  /** How often the platform publishes its signal. */
  signals: number;
  /** The first report comes before the POS has answered us. */
  early: boolean;
  reports: Report[];
  /** The location that tries to cancel this order, which is none of its business. */
  meddler: string | undefined;
  /** What of this is a fault. */
  faults: Kind[];
};

const COURSE: Record<FulfillmentType, readonly Status[]> = {
  pickup: ['received', 'in_progress', 'ready', 'completed'],
  delivery: ['received', 'in_progress', 'ready', 'en_route', 'completed'],
};
/** Between two steps in the kitchen, in milliseconds. */
const STEP_MS = [200, 1_800] as const;

/** @param nth counts the orders of a run from 1 */
export function scriptOrder(
  seed: number,
  nth: number,
  locationIds: readonly string[],
  only: ReadonlySet<Kind>,
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
  const ends = drawn('end');
  // A till closes the check of an order that was cancelled: that must not complete it.
  const course = ends < 0.08 ? [...COURSE[type].slice(0, 2), 'cancelled' as const, 'completed' as const] : COURSE[type];

  let at = 0;
  const reports = course.map((status, step): Report => {
    at += STEP_MS[0] + drawn('step', step) * (STEP_MS[1] - STEP_MS[0]);
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
  const strangers = locationIds.filter((other) => other !== locationId);
  return {
    serviceOrderId,
    locationId,
    type,
    signals: happens('duplicate', 0.1, -1) ? 2 : 1,
    early: happens('early', 0.1),
    reports,
    meddler: happens('foreign', 0.05) ? pick(strangers, drawn('meddler')) : undefined,
    faults,
  };
}
