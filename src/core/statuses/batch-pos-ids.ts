import type { PosId } from '../domain/webhook.ts';

/**
 * One re-drive at a time, for all POS ids that became ours while the one before it ran: each order brings one, and
 * mostly nothing waits for it.
 * @param onError the events that wait are left to the sweep
 */
export function batchPosIds(
  redrive: (posIds: readonly PosId[]) => Promise<void>,
  onError: (error: unknown) => void,
): (posIds: readonly PosId[]) => void {
  let gathered: PosId[] = [];
  let running = false;

  const run = async (): Promise<void> => {
    while (gathered.length > 0) {
      const posIds = gathered;
      gathered = [];
      await redrive(posIds).catch(onError);
    }
    running = false;
  };

  return (posIds) => {
    gathered.push(...posIds);
    if (running || gathered.length === 0) return;
    running = true;
    void run();
  };
}
