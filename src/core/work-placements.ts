import { randomUUID } from 'node:crypto';
import { LEASE_S, claimPlacements, type Claim } from './claim-placements.ts';
import { giveBack } from './attempts.ts';
import { placeOrder } from './place-order.ts';
import type { Placing } from './placing.ts';
import { workLoop, type WorkLoop } from './work-loop.ts';

/** Of fetched ones: what POS systems that hang can hold of this process. They mostly wait. */
const SENDERS = 224;
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

/** Claims and places orders, each location within its share of the workers. */
export function workPlacements(deps: Omit<Placing, 'enter'>): WorkLoop {
  const sending: string[] = [];
  let fetching = 0;
  const share = (): number => SHARES.find(({ below }) => sending.length < below)?.share ?? LEAST_SHARE;
  let lost: { leaseId: string; at: number }[] = [];

  const place = async (claim: Claim): Promise<void> => {
    let entered: string | undefined;
    let fetches = claim.locationId === null;
    if (fetches) fetching += 1;
    const fetched = (): void => {
      if (fetches) fetching -= 1;
      fetches = false;
    };
    const enter = (locationId: string): boolean => {
      fetched();
      if (entered === locationId) return true;
      if (sending.length >= SENDERS) return false;
      if (sending.filter((each) => each === locationId).length >= share()) return false;
      entered = locationId;
      sending.push(locationId);
      return true;
    };
    if (claim.locationId !== null) enter(claim.locationId);
    try {
      await placeOrder({ ...deps, enter }, claim);
    } catch (error) {
      deps.log.error({ serviceOrderId: claim.serviceOrderId, err: error }, 'placement interrupted');
      await giveBack(deps.pool, claim).catch(() => {}); // Its lease runs out.
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
    try {
      return await claimPlacements(deps.pool, {
        leaseId,
        lost: lost.map((each) => each.leaseId),
        limit,
        share: share(),
        busy: sending,
        senders: SENDERS - sending.length,
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
