import { claimPlacements, type Claim } from './claim-placements.ts';
import { giveBack } from './attempts.ts';
import { placeOrder } from './place-order.ts';
import type { Placing } from './placing.ts';
import { workLoop, type WorkLoop } from './work-loop.ts';

/** They mostly wait. */
const WORKERS = 256;
/** Of one location: what a POS that hangs can hold of this process. */
const SHARE = 4;
/** Of all that are not fetched yet: what a platform that hangs can hold. */
const FETCHERS = 192;
/** For what other processes left, what was due later, and what the command line changed. */
const POLL_MS = 1_000;

/** Claims and places orders, each location within its share of the workers. */
export function workPlacements(deps: Omit<Placing, 'enter'>): WorkLoop {
  const sending: string[] = [];
  let fetching = 0;

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
      if (sending.filter((each) => each === locationId).length >= SHARE) return false;
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

  return workLoop({
    capacity: WORKERS,
    pollMs: POLL_MS,
    claim: (limit) =>
      claimPlacements(deps.pool, { limit, share: SHARE, busy: sending, unfetched: FETCHERS - fetching }),
    work: place,
    onClaimError: (error) => deps.log.error({ err: error }, 'placements could not be claimed'),
  });
}
