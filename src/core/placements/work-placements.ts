import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { claimPlacements } from './claim-placements.ts';
import { dueLocations, isFree, type Capacity } from './due-locations.ts';
import { LEASE_S, type Claim } from '../domain/placement.ts';
import { releaseClaim } from '../transitions/placement-sql.ts';
import { placeOrder } from './place-order.ts';
import { workLoop, type WorkLoop } from '../postgres/loops.ts';
import { whenDue } from '../postgres/when-due.ts';
import type { PlacementDeps } from './placement-job.ts';

/** Workers for fetched placements. Hanging POS systems can occupy only these. Workers mostly wait for responses. */
const SENDERS = 224;
/** Maximum workers for one integration. If its POS hangs, the rest serve other integrations until its circuit opens. */
const SENDERS_OF_ONE = 168;
/** Workers that try silent locations of an integration with an open circuit. The first answer closes the circuit. */
const PROBES = 4;
/** Workers that fetch orders from the platform. A hanging platform can occupy only these. */
const FETCHERS = 192;
const WORKERS = SENDERS + FETCHERS;
/** Maximum workers for one location: fewer if many are busy, so a vendor that hangs everywhere cannot occupy all. */
const SHARES = [
  { below: 64, share: 4 },
  { below: 128, share: 2 },
];
const LEAST_SHARE = 1;
/** The workers that one location may have while so many are busy. */
export const shareOf = (busy: number): number => SHARES.find(({ below }) => busy < below)?.share ?? LEAST_SHARE;
/** Share of the free fetchers that takes the newest placements. The others take the oldest. */
const NEWEST = 0.25;
/** Expired leases, newly due placements, and changes by the command line or other processes. */
export const PLACEMENTS_DUE = `EXISTS (SELECT FROM placements
  WHERE finished_at IS NULL AND next_attempt_at <= now() AND ${isFree(`'{}'`)})`;
/** Maximum number of placements past their deadline that are claimed at once at silent locations. */
const LATE = 100;

/** The location of a placement that is being sent. The integration is null if the location is not configured. */
type Sending = { locationId: string; integration: string | null };

type PlacementWork = WorkLoop & {
  /** Signals that fetched placements may have become due. `wake` signals only a new placement. */
  wakeForAll(): void;
};

/** Claims and places orders. Each location and each integration is limited to its share of the workers. */
export function workPlacements(deps: Omit<PlacementDeps, 'acquireSlot'>): PlacementWork {
  const { breaker } = deps;
  const due = dueLocations();
  const sending: Sending[] = [];
  let fetching = 0;
  const share = (): number => shareOf(sending.length);
  const isFull = ({ locationId, integration }: Sending): boolean =>
    sending.length >= SENDERS ||
    sending.filter((each) => each.locationId === locationId).length >= (breaker.isOpen(integration) ? 1 : share()) ||
    sending.filter((each) => each.integration === integration).length >= SENDERS_OF_ONE;
  const probesFree = (integration: string): number =>
    Math.max(0, PROBES - sending.filter((each) => each.integration === integration && breaker.isSilent(each)).length);

  const place = async (claim: Claim): Promise<void> => {
    let slot: Sending | undefined;
    let refused: Sending | undefined;
    let fetches = claim.locationId === null;
    if (fetches) fetching += 1;
    const fetched = (): void => {
      if (fetches) fetching -= 1;
      fetches = false;
    };
    const take = (location: Sending): void => {
      slot = location;
      sending.push(location);
    };
    const acquireSlot = (location: Sending): boolean => {
      fetched();
      if (slot !== undefined) return true;
      // Refuse a silent location: only `chooseQueues` decides which silent location is tried next.
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
      await placeOrder({ ...deps, acquireSlot }, claim);
    } catch (error) {
      deps.log.error({ serviceOrderId: claim.serviceOrderId, err: error }, 'placement interrupted');
      await releaseClaim(deps.pool, claim).catch(() => {}); // If this fails, the lease expires.
    } finally {
      fetched();
      if (slot !== undefined) sending.splice(sending.indexOf(slot), 1);
      if (refused !== undefined) due.add(refused);
    }
  };

  const capacityWithin = (limit: number): Capacity => {
    const fetchers = Math.min(limit, FETCHERS - fetching);
    // Usually only one fetcher is free. Random rounding gives it to the newest placement in some of the claims.
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
    poll: () => whenDue(deps.pool, PLACEMENTS_DUE),
    claim: claimer(deps.pool, due, capacityWithin),
    work: place,
    log: deps.log,
    failing: 'placements could not be claimed',
  });
  return {
    ...loop,
    round() {
      due.expire();
      return loop.round();
    },
    wake() {
      due.signalled();
      loop.wake();
    },
    wakeForAll() {
      due.expire();
      loop.wake();
    },
  };
}

/** A failed claim may have been committed before its connection broke. Later claims find its placements by lease id. */
function claimer(
  pool: Pool,
  due: ReturnType<typeof dueLocations>,
  capacityWithin: (limit: number) => Capacity,
): (limit: number) => Promise<Claim[]> {
  let lost: { leaseId: string; at: number }[] = [];
  return async (limit) => {
    const leaseId = randomUUID();
    // Forget older claims, because their leases have expired.
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
