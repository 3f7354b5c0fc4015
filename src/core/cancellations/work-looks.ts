import type { Log } from '../domain/log.ts';
import { workLoop, type WorkLoop } from '../postgres/work-loop.ts';
import { claimLooks } from './claim-looks.ts';
import { lookAgain, type LookDeps } from './look-again.ts';

/** The most that a hanging platform can hold: enough for a hundred signals a second that it answers in a third of one. */
const WORKERS = 32;
const POLL_MS = 1_000;

/** Looks again at known orders that were signalled. */
export function workLooks(deps: LookDeps & { log: Log }): WorkLoop {
  return workLoop({
    capacity: WORKERS,
    pollMs: POLL_MS,
    claim: (limit) => claimLooks(deps.pool, limit),
    work: (look) =>
      lookAgain(deps, look).catch((error: unknown) => {
        deps.log.error({ serviceOrderId: look.serviceOrderId, err: error }, 'look left to its lease');
      }),
    log: deps.log,
    failing: 'looks could not be claimed',
  });
}
