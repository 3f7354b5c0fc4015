import type { Log } from '../domain/log.ts';
import { workLoop, type WorkLoop } from '../postgres/loops.ts';
import { whenDue } from '../postgres/when-due.ts';
import { cancelAtPos, type CancelDeps } from './cancel-at-pos.ts';
import { claimCancellations, type CancelClaim } from './claim-cancellations.ts';
import { concludeCancellation, releaseCancellation, type ConcludeDeps } from './conclude-cancellation.ts';
import { ARE_OPEN } from './sweep-cancellations.ts';

/** Workers for all integrations. The claim limits each integration, so that a hanging one leaves workers to others. */
const WORKERS = 96;

/** Cancels orders at their POS systems, one at a time at each location. */
export function workCancellations(deps: CancelDeps & ConcludeDeps & { log: Log }): WorkLoop {
  const { pool, log, breaker } = deps;
  const busy: string[] = [];

  const work = async (claim: CancelClaim): Promise<void> => {
    const integration = claim.integration ?? '';
    busy.push(integration);
    try {
      await concludeCancellation(deps, claim, await cancelAtPos(deps, claim));
    } catch (error) {
      log.error({ serviceOrderId: claim.serviceOrderId, err: error }, 'cancellation interrupted');
      await releaseCancellation(pool, claim).catch(() => {}); // If this fails, the lease expires.
    } finally {
      busy.splice(busy.indexOf(integration), 1);
    }
  };

  return workLoop({
    capacity: WORKERS,
    poll: () => whenDue(pool, ARE_OPEN),
    claim(limit) {
      const open = [...breaker.states().keys()].filter((integration) => breaker.isOpen(integration));
      return claimCancellations(pool, { limit, busy, open });
    },
    work,
    log,
    failing: 'cancellations could not be claimed',
  });
}
