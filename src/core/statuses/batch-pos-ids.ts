import type { PosId } from '../domain/webhook.ts';

/**
 * Re-drives in batches, one at a time, for all POS ids that became ours during the last one: each order brings one, and
 * mostly nothing waits for it.
 * @param onError called on failure; the sweep handles the parked events
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
