import type { MedusaContainer } from '@medusajs/framework';
import { Modules } from '@medusajs/framework/utils';
import { signal } from '../signal';

const PAGE = 100;
/** Changes before a round may be committed only after it. */
const OVERLAP_MS = 10_000;
/** A new process looks this far back, so the shop and Expediter may be away for as long. */
let since = Date.now() - 24 * 60 * 60_000;

/** Signals each order that was changed since the last round in which Expediter took all signals. */
export default async function signalAgain(container: MedusaContainer): Promise<void> {
  const startedAt = Date.now();
  const orders = container.resolve(Modules.ORDER);
  for (let skip = 0, full = true; full; skip += PAGE) {
    const page = await orders.listOrders(
      { updated_at: { $gte: new Date(since).toISOString() } },
      { select: ['id'], order: { created_at: 'ASC', id: 'ASC' }, skip, take: PAGE },
    );
    for (const { id } of page) await signal(id);
    full = page.length === PAGE;
  }
  since = startedAt - OVERLAP_MS;
}

export const config = { name: 'signal-again', schedule: { interval: 20_000 } };
