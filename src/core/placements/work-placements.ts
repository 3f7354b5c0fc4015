import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { claimPlacements } from './claim-placements.ts';
import { dueLocations, type Capacity } from './due-locations.ts';
import { LEASE_S, type Claim } from '../domain/placement.ts';
import { releaseClaim } from './placement-sql.ts';
import { placeOrder } from './place-order.ts';
import { workLoop, type WorkLoop } from '../postgres/loops.ts';
import type { PlacementDeps } from './placement-job.ts';

/** Workers for fetched placements: the most that hanging POS systems can hold. They mostly wait. */
const SENDERS = 224;
/** Workers of one integration, so that a hanging one leaves room for others before it is noticed. */
const SENDERS_OF_ONE = 168;
/** Workers for silent locations of an open circuit. The first answer closes it. */
const PROBES = 4;
/** Workers for placements not fetched yet: the most that a hanging platform can hold. */
const FETCHERS = 192;
const WORKERS = SENDERS + FETCHERS;
/** Workers of one location. Fewer while more are busy, so that a vendor that hangs everywhere cannot hold them all. */
const SHARES = [
  { below: 64, share: 4 },
  { below: 128, share: 2 },
];
const LEAST_SHARE = 1;
/** Share of the free fetchers for the newest. */
const NEWEST = 0.25;
/** Interval of polls for what other processes left, what became due, and what the command line changed. */
const POLL_MS = 1_000;
/** The most that are claimed at once past their deadline while they wait for a probe. */
const LATE = 100;

/** The location that a worker sends for. Without an integration it is not configured. */
type Sending = { locationId: string; integration: string | null };

type PlacementWork = WorkLoop & {
  /** Signals that placements may have become due that were fetched before; `wake` that there is a new one. */
  wakeForAll(): void;
};

/** Claims and places orders, each location and each integration within its share of the workers. */
export function workPlacements(deps: Omit<PlacementDeps, 'enter'>): PlacementWork {
  const { breaker } = deps;
  const due = dueLocations();
  const sending: Sending[] = [];
  let fetching = 0;
  const share = (): number => SHARES.find(({ below }) => sending.length < below)?.share ?? LEAST_SHARE;
  const isFull = ({ locationId, integration }: Sending): boolean =>
    sending.length >= SENDERS ||
    sending.filter((each) => each.locationId === locationId).length >= (breaker.isOpen(integration) ? 1 : share()) ||
    sending.filter((each) => each.integration === integration).length >= SENDERS_OF_ONE;
  const probesFree = (integration: string): number =>
    Math.max(0, PROBES - sending.filter((each) => each.integration === integration && breaker.isSilent(each)).length);

  const place = async (claim: Claim): Promise<void> => {
    let entered: Sending | undefined;
    let refused: Sending | undefined;
    let fetches = claim.locationId === null;
    if (fetches) fetching += 1;
    const fetched = (): void => {
      if (fetches) fetching -= 1;
      fetches = false;
    };
    const take = (location: Sending): void => {
      entered = location;
      sending.push(location);
    };
    const enter = (location: Sending): boolean => {
      fetched();
      if (entered !== undefined) return true;
      // The claim decides which silent location is tried next.
      if (isFull(location) || breaker.isSilent(location)) {
        refused = location;
        return false;
      }
      take(location);
      return true;
    };
    const { locationId, integration } = claim;
    if (locationId !== null && !isFull({ locationId, integration })) take({ locationId, integration });
    try {
      await placeOrder({ ...deps, enter }, claim);
    } catch (error) {
      deps.log.error({ serviceOrderId: claim.serviceOrderId, err: error }, 'placement interrupted');
      await releaseClaim(deps.pool, claim).catch(() => {}); // Its lease runs out.
    } finally {
      fetched();
      if (entered !== undefined) sending.splice(sending.indexOf(entered), 1);
      if (refused !== undefined) due.add(refused);
    }
  };

  const capacityWithin = (limit: number): Capacity => {
    const fetchers = Math.min(limit, FETCHERS - fetching);
    // Rounded by chance, since mostly one fetcher is free.
    const newest = Math.floor(fetchers * NEWEST + Math.random());
    const open = [...breaker.states().keys()].filter((integration) => breaker.isOpen(integration));
    return {
      limit,
      share: share(),
      busy: sending,
      senders: SENDERS - sending.length,
      sendersOfOne: SENDERS_OF_ONE,
      open: open.map((integration) => ({ integration, probes: probesFree(integration) })),
      silent: breaker.silentLocations(),
      late: LATE,
      oldest: fetchers - newest,
      newest,
    };
  };

  const loop = workLoop({
    capacity: WORKERS,
    pollMs: POLL_MS,
    claim: claimer(deps.pool, due, capacityWithin),
    work: place,
    log: deps.log,
    failing: 'placements could not be claimed',
  });
  return {
    ...loop,
    wakeForAll() {
      due.expire();
      loop.wake();
    },
  };
}

/** A claim whose answer was lost with a broken connection may have succeeded: the next ones name its lease. */
function claimer(
  pool: Pool,
  due: ReturnType<typeof dueLocations>,
  capacityWithin: (limit: number) => Capacity,
): (limit: number) => Promise<Claim[]> {
  let lost: { leaseId: string; at: number }[] = [];
  return async (limit) => {
    const leaseId = randomUUID();
    // An older claim has expired by itself.
    lost = lost.filter(({ at }) => performance.now() - at < LEASE_S * 1_000);
    try {
      const leases = lost.map((each) => each.leaseId);
      return await claimPlacements(pool, due, { leaseId, lost: leases, capacity: () => capacityWithin(limit) });
    } catch (error) {
      lost.push({ leaseId, at: performance.now() });
      throw error;
    }
  };
}
