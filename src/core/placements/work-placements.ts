import { randomUUID } from 'node:crypto';
import { claimPlacements } from './claim-placements.ts';
import { LEASE_S, type Claim } from '../domain/placement.ts';
import { releaseClaim } from './release-claim.ts';
import { placeOrder } from './place-order.ts';
import type { PlacementDeps } from './placement-job.ts';
import { workLoop, type WorkLoop } from '../postgres/work-loop.ts';

/** Of fetched ones: what POS systems that hang can hold of this process. They mostly wait. */
const SENDERS = 224;
/** Of one integration: whoever hangs leaves room for the others before anybody knows that it hangs. */
const SENDERS_OF_ONE = 168;
/** Of the locations of one integration that do not answer, while its circuit is open: the first answer closes it. */
const PROBES = 4;
/** Of those that are not fetched yet: what a platform that hangs can hold. */
const FETCHERS = 192;
const WORKERS = SENDERS + FETCHERS;
/** Of one location; the less the more are under way, lest a vendor that hangs everywhere holds them all. */
const SHARES = [
  { below: 64, share: 4 },
  { below: 128, share: 2 },
];
const LEAST_SHARE = 1;
/** Of the free fetchers, for the newest. */
const NEWEST = 0.25;
/** For what other processes left, what was due later, and what the command line changed. */
const POLL_MS = 1_000;
/** So often, so many whose deadline passed while they waited for a probe. */
const LATE_LOOK_MS = 5_000;
const LATE = 100;

/** Whom a worker sends for. No integration: the location is not configured. */
type Sending = { locationId: string; integration: string | null };

/** Claims and places orders, each location and each integration within its share of the workers. */
export function workPlacements(deps: Omit<PlacementDeps, 'enter'>): WorkLoop {
  const { breaker } = deps;
  const sending: Sending[] = [];
  let fetching = 0;
  let lateLookAt = -Infinity;
  const share = (): number => SHARES.find(({ below }) => sending.length < below)?.share ?? LEAST_SHARE;
  const isFull = ({ locationId, integration }: Sending): boolean =>
    sending.length >= SENDERS ||
    sending.filter((each) => each.locationId === locationId).length >= (breaker.isOpen(integration) ? 1 : share()) ||
    sending.filter((each) => each.integration === integration).length >= SENDERS_OF_ONE;
  const probesFree = (integration: string): number =>
    Math.max(0, PROBES - sending.filter((each) => each.integration === integration && breaker.isSilent(each)).length);
  let lost: { leaseId: string; at: number }[] = [];

  const place = async (claim: Claim): Promise<void> => {
    let entered: Sending | undefined;
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
      // Which of the silent ones is tried next, the claim says.
      if (isFull(location) || breaker.isSilent(location)) return false;
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
    }
  };

  /** One whose answer is lost, with a connection that broke, may have been made all the same. */
  const claim = async (limit: number): Promise<Claim[]> => {
    const leaseId = randomUUID();
    const fetchers = Math.min(limit, FETCHERS - fetching);
    // By chance, since mostly one is free at a time.
    const newest = Math.floor(fetchers * NEWEST + Math.random());
    // An older one has run out by itself.
    lost = lost.filter(({ at }) => performance.now() - at < LEASE_S * 1_000);
    const silent = breaker.silentLocations();
    const open = [...breaker.states().keys()].filter((integration) => breaker.isOpen(integration));
    const looksForLate = silent.length > 0 && performance.now() - lateLookAt >= LATE_LOOK_MS;
    if (looksForLate) lateLookAt = performance.now();
    try {
      return await claimPlacements(deps.pool, {
        leaseId,
        lost: lost.map((each) => each.leaseId),
        limit,
        share: share(),
        busy: sending,
        senders: SENDERS - sending.length,
        sendersOfOne: SENDERS_OF_ONE,
        open: open.map((integration) => ({ integration, probes: probesFree(integration) })),
        silent,
        late: looksForLate ? LATE : 0,
        oldest: fetchers - newest,
        newest,
      });
    } catch (error) {
      lost.push({ leaseId, at: performance.now() });
      throw error;
    }
  };

  return workLoop({
    capacity: WORKERS,
    pollMs: POLL_MS,
    claim,
    work: place,
    onClaimError: (error) => deps.log.error({ err: error }, 'placements could not be claimed'),
  });
}
